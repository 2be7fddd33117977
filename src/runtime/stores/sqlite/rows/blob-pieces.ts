import type { RunId } from "../../../../kernel/index.ts";
import type { Database } from "../db/database.ts";

/** Size of the pieces of a blob in bytes. A blob is freed piece by piece. */
const pieceBytes = 262_144;

const findBlob = "SELECT id FROM blobs WHERE run_id = ? AND blob_id = ?";

/** Returns `false` if a blob of this name exists, which is kept. Call inside a transaction. */
export function putPieces(database: Database, runId: RunId, name: string, bytes: Uint8Array): boolean {
  const blob = database.get<{ readonly id: number }>(
    "INSERT INTO blobs (run_id, blob_id) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id",
    runId,
    name,
  );
  if (blob === undefined) return false;
  for (let start = 0; start < bytes.length; start += pieceBytes) {
    const piece = bytes.subarray(start, start + pieceBytes);
    database.run("INSERT INTO blob_pieces (blob, bytes) VALUES (?, ?)", blob.id, piece);
  }
  return true;
}

export function readPieces(database: Database, runId: RunId, name: string): Uint8Array | undefined {
  const blob = database.get<{ readonly id: number }>(findBlob, runId, name);
  if (blob === undefined) return undefined;
  const pieces = database.all<{ readonly bytes: Uint8Array }>(
    "SELECT bytes FROM blob_pieces WHERE blob = ? ORDER BY id",
    blob.id,
  );
  return joined(pieces.map(({ bytes }) => bytes));
}

/** Removes the blob immediately, without the collector. Call inside a transaction. */
export function removePieces(database: Database, runId: RunId, name: string): void {
  const blob = database.get<{ readonly id: number }>(findBlob, runId, name);
  if (blob === undefined) return;
  database.run("DELETE FROM blob_pieces WHERE blob = ?", blob.id);
  database.run("DELETE FROM blobs WHERE id = ?", blob.id);
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
