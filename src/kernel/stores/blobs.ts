import type { RunId } from "../base/identity.ts";

/** Where a store keeps large texts apart from the journal's rows, those above this size. */
export const blobThreshold = 65_536;

/**
 * Large values of a run, by content. Every store passes `blobContract`, which checks:
 *
 * - V1 What was put is got back byte for byte, under the same id for the same bytes.
 * - V2 A blob belongs to its run and goes with it; the same bytes in another run stay. For a run that is not there it is refused with
 *   `not_found`. `delete` leaves alone what the store keeps of the run itself.
 */
export interface Blobs {
  put(runId: RunId, bytes: Uint8Array): Promise<string>;
  get(runId: RunId, blobId: string): Promise<Uint8Array | undefined>;
  delete(runId: RunId): Promise<void>;
}
