import type { Blobs, Hash, RunId } from "../../../kernel/index.ts";
import { putPieces, readPieces } from "./rows/blob-pieces.ts";
import type { Collector } from "./retention/collector.ts";
import { commitBodies } from "./rows/large-bodies.ts";
import type { Tables } from "./db/tables.ts";

export class SqliteBlobs implements Blobs {
  readonly #tables: Tables;
  readonly #collector: Collector;
  readonly #hash: Hash;

  constructor(tables: Tables, collector: Collector, hash: Hash) {
    this.#tables = tables;
    this.#collector = collector;
    this.#hash = hash;
  }

  async put(runId: RunId, bytes: Uint8Array): Promise<string> {
    const blobId = this.#hash(bytes);
    const kept = bytes.slice();
    await this.#tables.write({ bytes: kept.length, apply: () => this.#put(runId, blobId, kept) });
    return blobId;
  }

  async get(runId: RunId, blobId: string): Promise<Uint8Array | undefined> {
    return this.#tables.read(() => readPieces(this.#tables.database, runId, blobId));
  }

  async delete(runId: RunId): Promise<void> {
    await this.#tables.write({
      apply: () => {
        this.#tables.database.run(
          `UPDATE blobs SET run_id = NULL WHERE run_id = ? AND blob_id NOT GLOB '${commitBodies}'`,
          runId,
        );
      },
    });
    await this.#collector.collect();
  }

  /**
   * Deletes all blobs of a run, including those that hold its commits, inside the journal's transaction. The collector
   * frees the rows later.
   */
  deleteNow(runId: RunId): void {
    this.#tables.database.run("UPDATE blobs SET run_id = NULL WHERE run_id = ?", runId);
  }

  #put(runId: RunId, blobId: string, bytes: Uint8Array): void {
    this.#tables.run(runId);
    putPieces(this.#tables.database, runId, blobId, bytes);
  }
}
