import { Fault } from "../../../kernel/index.ts";
import { contentText, hashesIn, type LargeValue } from "../codec/large-values.ts";
import type { OwnerKind } from "../codec/owner-kind.ts";
import type { Dialect } from "./dialect.ts";
import { all, get, run, type Work } from "./work.ts";

/** Size of the pieces of a content, in bytes. A content is read and deleted piece by piece. */
const pieceBytes = 262_144;
/** Maximum number of pieces per content. */
export const piecesPerContent = 4_096;

/** The row that refers to a content, or the run or session for which an application put it. */
export interface OwnerRow {
  readonly kind: (typeof OwnerKind)[keyof typeof OwnerKind];
  /** Row id in the table of that kind. */
  readonly id: number;
}

/** A content that a row needs. */
export interface NewContent {
  readonly tenant: string;
  readonly owner: OwnerRow;
  readonly hash: string;
  /** Returns the bytes of the content. Called only if the tenant does not have the content yet. */
  readonly data: () => string | Uint8Array;
}

interface Piece {
  readonly data: string | Uint8Array;
}

const findIn = "SELECT id FROM {contents} WHERE hash = $1 AND tenant = $2";
/** SQL that finds a content and locks it, so that it is kept until the transaction has committed its owner. */
const findAndLock = `${findIn} FOR SHARE`;
const insertContent = `INSERT INTO {contents} (hash, tenant) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id`;
const addOwner =
  "INSERT INTO {content_owners} (content, kind, owner) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
const removeOthers = `DELETE FROM {content_owners} WHERE kind = $1 AND owner = $2 AND content NOT IN
  (SELECT id FROM {contents} WHERE hash = ANY($3::text[]))`;

/** Reads and writes contents. All changes are made inside the caller's transaction. */
export class ContentRows {
  readonly #dialect: Dialect;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  /** Stores the values that the tenant does not have yet, and makes the row an owner of all of them. */
  *keep(tenant: string, owner: OwnerRow, values: readonly LargeValue[]): Work<void> {
    for (const value of values)
      yield* this.put({ tenant, owner, hash: value.hash, data: () => contentText(value) });
  }

  /** Stores a content if the tenant does not have it, and adds an owner. */
  *put({ tenant, owner, hash, data }: NewContent): Work<void> {
    for (;;) {
      const found = yield* get<{ readonly id: number }>(findAndLock, hash, tenant);
      const content = found?.id ?? (yield* this.#insert(tenant, hash, data));
      // Another transaction has inserted the content meanwhile.
      if (content === undefined) continue;
      yield* this.addOwner(content, owner);
      return;
    }
  }

  *find(tenant: string, hash: string): Work<number | undefined> {
    return (yield* get<{ readonly id: number }>(findIn, hash, tenant))?.id;
  }

  *addOwner(content: number, { kind, id }: OwnerRow): Work<void> {
    yield* run(addOwner, content, kind, id);
  }

  /** Ends the ownership of all contents that are not in these references. */
  *keepOnly({ kind, id }: OwnerRow, refs: string | null): Work<void> {
    yield* run(removeOthers, kind, id, refs === null ? [] : hashesIn(refs));
  }

  /** Returns the contents that texts refer to, by hash. A content that does not exist is left out. */
  *load(texts: readonly (string | null)[]): Work<ReadonlyMap<string, string>> {
    const hashes = new Set(texts.flatMap((refs) => (refs === null ? [] : hashesIn(refs))));
    const contents = new Map<string, string>();
    if (hashes.size === 0) return contents;
    const pieces = yield* all<Piece & { readonly hash: string }>(this.#dialect.readAnyContents, [...hashes]);
    for (const [hash, own] of Map.groupBy(pieces, (piece) => piece.hash)) {
      const [first] = own;
      const isText = own.length === 1 && typeof first?.data === "string";
      contents.set(hash, isText ? first.data : bytesOf(own).toString());
    }
    return contents;
  }

  *read(content: number): Work<Uint8Array> {
    const pieces = yield* all<Piece>(this.#dialect.readContent, content);
    return new Uint8Array(bytesOf(pieces));
  }

  *#insert(tenant: string, hash: string, data: () => string | Uint8Array): Work<number | undefined> {
    const row = yield* get<{ readonly id: number }>(insertContent, hash, tenant);
    if (row === undefined) return undefined;
    let place = 0;
    for (const piece of this.#piecesOf(data())) yield* run(this.#dialect.insertPiece, row.id, place++, piece);
    return row.id;
  }

  /** Returns the pieces of a content. An empty content has one empty piece, so that it can be found. */
  *#piecesOf(data: string | Uint8Array): Iterable<string | Uint8Array> {
    if (typeof data === "string" && data.length <= pieceBytes && this.#dialect.storesTextPieces) {
      yield data;
      return;
    }
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    const most = pieceBytes * piecesPerContent;
    if (bytes.length > most)
      throw new Fault(
        "too_large",
        `a content of ${bytes.length} bytes cannot be stored: the limit is ${most}`,
      );
    for (let start = 0; start === 0 || start < bytes.length; start += pieceBytes)
      yield bytes.subarray(start, start + pieceBytes);
  }
}

function bytesOf(pieces: readonly Piece[]): Buffer {
  return Buffer.concat(pieces.map(({ data }) => (typeof data === "string" ? Buffer.from(data) : data)));
}
