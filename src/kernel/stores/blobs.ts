import type { RunId } from "../base/identity.ts";

/** Size in bytes above which a store keeps the text of a commit outside the journal's row. */
export const blobThreshold = 65_536;

/**
 * Large values of a run, addressed by content. Every store passes `blobContract`, which checks:
 *
 * - V1 `get` returns the bytes that were put, unchanged. The same bytes in the same run always have the same id.
 * - V2 A blob belongs to its run and is deleted with the run. The same bytes in another run are kept. `put` for a run that does
 *   not exist is refused with `not_found`. `delete` does not touch blobs in which the store keeps commits of the run.
 */
export interface Blobs {
  /** Returns the id of the blob. */
  put(runId: RunId, bytes: Uint8Array): Promise<string>;
  get(runId: RunId, blobId: string): Promise<Uint8Array | undefined>;
  /** Deletes all blobs of the run. */
  delete(runId: RunId): Promise<void>;
}
