import type { Blobs, Hash, RunId } from "../../../kernel/index.ts";
import type { Collector } from "./collector.ts";
import type { Tables } from "./tables.ts";

/** A blob is kept in pieces of so many bytes, so that it can be freed piece by piece. */
const pieceBytes = 262_144;

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

  get(runId: RunId, blobId: string): Promise<Uint8Array | undefined> {
    return this.#tables.read(() => {
      const { database } = this.#tables;
      const blob = database.get<{ readonly id: number }>(
        "SELECT id FROM blobs WHERE run_id = ? AND blob_id = ?",
        runId,
        blobId,
      );
      if (blob === undefined) return undefined;
      const pieces = database.all<{ readonly bytes: Uint8Array }>(
        "SELECT bytes FROM blob_pieces WHERE blob = ? ORDER BY id",
        blob.id,
      );
      return joined(pieces.map(({ bytes }) => bytes));
    });
  }

  async delete(runId: RunId): Promise<void> {
    await this.#tables.write({ apply: () => this.deleteNow(runId) });
    await this.#collector.collect();
  }

  /** For the journal, inside its transaction. What it leaves is the collector's. */
  deleteNow(runId: RunId): void {
    this.#tables.database.run("UPDATE blobs SET run_id = NULL WHERE run_id = ?", runId);
  }

  #put(runId: RunId, blobId: string, bytes: Uint8Array): void {
    const { database } = this.#tables;
    this.#tables.run(runId);
    const blob = database.get<{ readonly id: number }>(
      "INSERT INTO blobs (run_id, blob_id) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id",
      runId,
      blobId,
    );
    if (blob === undefined) return;
    for (let start = 0; start < bytes.length; start += pieceBytes) {
      const piece = bytes.subarray(start, start + pieceBytes);
      database.run("INSERT INTO blob_pieces (blob, bytes) VALUES (?, ?)", blob.id, piece);
    }
  }
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
