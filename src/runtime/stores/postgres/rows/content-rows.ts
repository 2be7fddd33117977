import { Fault } from "../../../../kernel/index.ts";
import { contentText, hashesIn, type LargeValue } from "../../codec/large-values.ts";
import type { OwnerKind } from "../../codec/owner-kind.ts";
import type { Queries } from "../db/queries.ts";

/** Size of the pieces of a content in bytes. A content is read and freed piece by piece. */
const pieceBytes = 262_144;
const mostPieces = 4_096;

/** The row that refers to a content, or the run or session for which an application put it. */
export interface OwnerRow {
  readonly kind: (typeof OwnerKind)[keyof typeof OwnerKind];
  /** Row id in the table of that kind. */
  readonly id: number;
}

interface Piece {
  readonly hash: string;
  readonly data: Uint8Array;
}

/** The lock keeps the content until the transaction has committed its owner. */
const findIn = "SELECT id FROM {contents} WHERE hash = $1 AND tenant = $2";
const findAndLock = `${findIn} FOR SHARE`;
const insertContent = `INSERT INTO {contents} (hash, tenant) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id`;
const insertPiece = "INSERT INTO {content_pieces} (content, place, data) VALUES ($1, $2, $3)";
/** Any tenant's row will do, because the bytes of equal hashes are equal. */
const readAny = `SELECT hash, data FROM (SELECT DISTINCT ON (hash) id, hash FROM {contents} WHERE hash = ANY($1::text[])) AS found
  JOIN {content_pieces} ON content = found.id ORDER BY found.id, place`;
const readPieces = "SELECT data FROM {content_pieces} WHERE content = $1 ORDER BY place";
const addOwner =
  "INSERT INTO {content_owners} (content, kind, owner) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
const removeOthers = `DELETE FROM {content_owners} WHERE kind = $1 AND owner = $2 AND content NOT IN
  (SELECT id FROM {contents} WHERE hash = ANY($3::text[]))`;

/** Stores the values that the tenant does not have yet, and makes the row an owner of all of them. Call inside a transaction. */
export async function keepValues(
  queries: Queries,
  tenant: string,
  owner: OwnerRow,
  values: readonly LargeValue[],
): Promise<void> {
  for (const value of values)
    await putContent(queries, {
      tenant,
      owner,
      hash: value.hash,
      data: () => Buffer.from(contentText(value)),
    });
}

/** A content that a row needs. */
export interface NewContent {
  readonly tenant: string;
  readonly owner: OwnerRow;
  readonly hash: string;
  /** Called only if the tenant does not have the content. */
  readonly data: () => Uint8Array;
}

/** Stores a content if the tenant does not have it, and adds an owner. Call inside a transaction. */
export async function putContent(queries: Queries, { tenant, owner, hash, data }: NewContent): Promise<void> {
  for (;;) {
    const content =
      (await queries.get<{ readonly id: number }>(findAndLock, hash, tenant))?.id ??
      (await insert(queries, tenant, hash, data));
    // Another transaction has inserted the content meanwhile.
    if (content === undefined) continue;
    await addContentOwner(queries, content, owner);
    return;
  }
}

export async function findContent(
  queries: Queries,
  tenant: string,
  hash: string,
): Promise<number | undefined> {
  return (await queries.get<{ readonly id: number }>(findIn, hash, tenant))?.id;
}

export async function addContentOwner(
  queries: Queries,
  content: number,
  { kind, id }: OwnerRow,
): Promise<void> {
  await queries.run(addOwner, content, kind, id);
}

/** Ends the ownership of all contents that these references do not name. */
export async function keepOnly(queries: Queries, { kind, id }: OwnerRow, refs: string | null): Promise<void> {
  await queries.run(removeOthers, kind, id, refs === null ? [] : hashesIn(refs));
}

/** Returns the contents that texts refer to, by hash. A content that does not exist is left out. */
export async function loadContents(
  queries: Queries,
  texts: readonly (string | null)[],
): Promise<ReadonlyMap<string, string>> {
  const hashes = new Set(texts.flatMap((refs) => (refs === null ? [] : hashesIn(refs))));
  const contents = new Map<string, string>();
  if (hashes.size === 0) return contents;
  const pieces = await queries.all<Piece>(readAny, [...hashes]);
  for (const [hash, data] of Map.groupBy(pieces, (piece) => piece.hash))
    contents.set(hash, Buffer.concat(data.map((piece) => piece.data)).toString());
  return contents;
}

export async function readContent(queries: Queries, content: number): Promise<Uint8Array> {
  const pieces = await queries.all<Omit<Piece, "hash">>(readPieces, content);
  return new Uint8Array(Buffer.concat(pieces.map(({ data }) => data)));
}

async function insert(
  queries: Queries,
  tenant: string,
  hash: string,
  data: () => Uint8Array,
): Promise<number | undefined> {
  const row = await queries.get<{ readonly id: number }>(insertContent, hash, tenant);
  if (row === undefined) return undefined;
  let place = 0;
  for (const piece of piecesOf(data())) await queries.run(insertPiece, row.id, place++, piece);
  return row.id;
}

/** An empty content has one empty piece, so that it is found. */
function* piecesOf(bytes: Uint8Array): Iterable<Uint8Array> {
  const most = pieceBytes * mostPieces;
  if (bytes.length > most)
    throw new Fault("too_large", `a content of ${bytes.length} bytes cannot be stored: the limit is ${most}`);
  for (let start = 0; start === 0 || start < bytes.length; start += pieceBytes)
    yield bytes.subarray(start, start + pieceBytes);
}
