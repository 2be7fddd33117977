import type { Blobs, Hash, RunId } from "../../../kernel/index.ts";
import type { Tables } from "./tables.ts";

export class MemoryBlobs implements Blobs {
  readonly #runs = new Map<RunId, Map<string, Uint8Array>>();
  readonly #tables: Tables;
  readonly #hash: Hash;

  constructor(tables: Tables, hash: Hash) {
    this.#tables = tables;
    this.#hash = hash;
  }

  async put(runId: RunId, bytes: Uint8Array): Promise<string> {
    this.#tables.run(runId);
    const blobs = this.#runs.get(runId) ?? new Map<string, Uint8Array>();
    this.#runs.set(runId, blobs);
    const blobId = this.#hash(bytes);
    if (!blobs.has(blobId)) blobs.set(blobId, bytes.slice());
    return blobId;
  }

  async get(runId: RunId, blobId: string): Promise<Uint8Array | undefined> {
    return this.#runs.get(runId)?.get(blobId)?.slice();
  }

  async delete(runId: RunId): Promise<void> {
    this.deleteNow(runId);
  }

  /** Deletes the blobs of a run. The journal calls this when it deletes the run. */
  deleteNow(runId: RunId): void {
    this.#runs.delete(runId);
  }
}
