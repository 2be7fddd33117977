import { Fault } from "../../../../kernel/index.ts";
import { contentText, hashesIn, type LargeValue } from "../../codec/large-values.ts";
import { piecesPerContent } from "../db/migrations.ts";
import type { Database } from "../db/database.ts";
import type { OwnerKind } from "../../codec/owner-kind.ts";

/** Size of the pieces of a content in bytes. A content is freed piece by piece. */
const pieceBytes = 262_144;

/** The row that refers to a content, or the run or session for which an application put it. */
export interface OwnerRow {
  readonly kind: (typeof OwnerKind)[keyof typeof OwnerKind];
  /** Row id in the table of that kind. */
  readonly id: number;
}

interface Piece {
  readonly data: string | Uint8Array;
}

const findIn = "SELECT id FROM contents WHERE hash = ? AND tenant = ?";
/**
 * Reads a content by its hash, which is in use as long as no piece is freed. One statement sees one state of the file:
 * with two, another process could free pieces in between, and a part of the content would pass for the whole. The
 * bytes of equal hashes are equal, so that any tenant's row will do.
 */
const readAny = `SELECT data FROM content_pieces
  WHERE id >= (SELECT min(id) FROM contents WHERE hash = ?1) * ${piecesPerContent}
    AND id < (SELECT min(id) + 1 FROM contents WHERE hash = ?1) * ${piecesPerContent} ORDER BY id`;
const readPieces = `SELECT data FROM content_pieces
  WHERE id >= ?1 * ${piecesPerContent} AND id < (?1 + 1) * ${piecesPerContent} ORDER BY id`;
const addOwner = "INSERT INTO content_owners (content, kind, owner) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
const removeOthers = `DELETE FROM content_owners WHERE kind = ? AND owner = ? AND content NOT IN
  (SELECT id FROM contents WHERE hash IN (SELECT value FROM json_each(?)))`;

/** Reads and writes contents. All changes are made inside the caller's transaction. */
export class ContentRows {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Stores the values that the tenant does not have yet, and makes the row an owner of all of them. */
  keepNow(tenant: string, owner: OwnerRow, values: readonly LargeValue[]): void {
    for (const value of values) this.putNow(tenant, owner, value.hash, () => contentText(value));
  }

  /** Calls `data` only if the tenant does not have the content. */
  putNow(tenant: string, owner: OwnerRow, hash: string, data: () => string | Uint8Array): void {
    const content = this.findNow(tenant, hash) ?? this.#insert(tenant, hash, data());
    this.addOwnerNow(content, owner);
  }

  findNow(tenant: string, hash: string): number | undefined {
    return this.#database.get<{ readonly id: number }>(findIn, hash, tenant)?.id;
  }

  addOwnerNow(content: number, { kind, id }: OwnerRow): void {
    this.#database.run(addOwner, content, kind, id);
  }

  /** Ends the ownership of all contents that these references do not name. */
  keepOnlyNow({ kind, id }: OwnerRow, refs: string | null): void {
    this.#database.run(removeOthers, kind, id, JSON.stringify(refs === null ? [] : hashesIn(refs)));
  }

  /** Returns the contents that a text refers to, by hash. Returns `undefined` if one of them does not exist. */
  load(refs: string): ReadonlyMap<string, string> | undefined {
    const contents = new Map<string, string>();
    for (const hash of hashesIn(refs)) {
      const pieces = this.#database.all<Piece>(readAny, hash);
      if (pieces.length === 0) return undefined;
      const data = dataOf(pieces);
      contents.set(hash, typeof data === "string" ? data : textOf(data));
    }
    return contents;
  }

  read(content: number): Uint8Array {
    const data = dataOf(this.#database.all<Piece>(readPieces, content));
    return typeof data === "string" ? new TextEncoder().encode(data) : data;
  }

  #insert(tenant: string, hash: string, data: string | Uint8Array): number {
    const id = this.#database.insert("INSERT INTO contents (hash, tenant) VALUES (?, ?)", hash, tenant);
    const insert = this.#database.statement("INSERT INTO content_pieces (id, data) VALUES (?, ?)");
    let piece = id * piecesPerContent;
    // A text of one piece needs no copy in UTF-8: SQLite encodes it.
    if (typeof data === "string" && data.length <= pieceBytes) insert.run(piece, data);
    else
      for (const each of piecesOf(typeof data === "string" ? Buffer.from(data) : data))
        insert.run(piece++, each);
    return id;
  }
}

function dataOf(pieces: readonly Piece[]): string | Uint8Array {
  const [first] = pieces;
  if (pieces.length === 1 && first !== undefined) return first.data;
  return joined(pieces.map(({ data }) => (typeof data === "string" ? Buffer.from(data) : data)));
}

function* piecesOf(bytes: Uint8Array): Iterable<Uint8Array> {
  const most = pieceBytes * piecesPerContent;
  if (bytes.length > most)
    throw new Fault("too_large", `a content of ${bytes.length} bytes cannot be stored: the limit is ${most}`);
  for (let start = 0; start < bytes.length; start += pieceBytes)
    yield bytes.subarray(start, start + pieceBytes);
}

function textOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString();
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
