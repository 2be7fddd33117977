import { createHmac } from "node:crypto";
import { chainHead, type Erasure, type Hash } from "../../../kernel/index.ts";
import type { CommitRow } from "./commit-row.ts";
import { hashesIn } from "./large-values.ts";

/** The columns of a commit that its hash (link) in the chain covers. */
type LinkedText = Pick<CommitRow, "number" | "at" | "nextEvent" | "body" | "refs">;

/** The columns of a row of session entries that its hash (seal) covers. */
export interface SealedEntries {
  readonly stem: string;
  readonly number: number;
  readonly count: number;
  readonly runId: string | null;
  readonly task: number | null;
  readonly type: string;
  readonly body: string;
  readonly refs: string | null;
}

/**
 * E1: the hash chain of commits. With a key, only its owners can compute a valid chain; without a key, anyone can.
 * Each hashed text begins with its purpose, so that a hash for one purpose is not valid for another one.
 */
export class Chain {
  readonly keyed: boolean;
  /** V1: returns the name of a content. */
  readonly contentHash: Hash;
  readonly #hash: Hash;

  constructor(hash: Hash, auditKey: string | undefined) {
    this.keyed = auditKey !== undefined;
    this.#hash = auditKey === undefined ? hash : keyedHash(auditKey);
    // Contents have a key of their own: an application can choose their bytes, and must not obtain a link that way.
    this.contentHash =
      auditKey === undefined
        ? hash
        : keyedHash(createHmac("sha256", auditKey).update("reeve content").digest());
  }

  /** Whether the contents that a row refers to exist and are unchanged. */
  holdsContents({ refs, contents }: Pick<CommitRow, "refs" | "contents">): boolean {
    if (refs === null) return true;
    return hashesIn(refs).every((hash) => {
      const content = contents?.get(hash);
      return content !== undefined && this.contentHash(content) === hash;
    });
  }

  /**
   * Returns the link of a commit, a hash that also covers all earlier commits through the previous link. It is the
   * only hash that a commit needs.
   */
  link(before: string, row: LinkedText): string {
    const { number, at, nextEvent } = row;
    return this.#hash(`link\n${before}\n${number} ${at} ${nextEvent}\n${coveredText(row)}`);
  }

  /**
   * Returns the seal of a commit whose text was erased: the hash of its original link and the remaining text. The
   * link itself could only be computed from the erased text.
   */
  seal(before: string, row: LinkedText & Pick<CommitRow, "link">): string {
    const { number, at, nextEvent, link } = row;
    return this.#hash(`seal\n${before}\n${number} ${at} ${nextEvent} ${link}\n${coveredText(row)}`);
  }

  /** Whether the row is unchanged since it was written after this link, apart from an erasure. */
  holds(before: string, row: CommitRow): boolean {
    return row.seal === null ? row.link === this.link(before, row) : row.seal === this.seal(before, row);
  }

  /**
   * Returns the hash (seal) of a row of session entries. Rows of entries form no chain, because entries are moved,
   * hidden and removed in no common order among runs.
   */
  entrySeal(sessionId: string, row: SealedEntries): string {
    const { stem, number, count, runId, task, type } = row;
    const place = JSON.stringify([sessionId, stem, number, count, runId, task, type]);
    return this.#hash(`entry\n${place}\n${coveredText(row)}`);
  }

  /**
   * Returns the head of a log, which a person can store elsewhere. It covers each link, because a link cannot be
   * computed again after an erasure. It also covers the erasures that each commit orders: without a key, nothing
   * else would distinguish an erasure from an edit.
   */
  head(before: string, row: Omit<CommitRow, "body" | "seal">, erases: readonly Erasure[] = []): string {
    const { number, at, nextEvent: nextSeq, link } = row;
    const content = erases.length === 0 ? link : `${link} ${JSON.stringify(erases)}`;
    return chainHead(`head\n${before}`, { number, at, nextSeq, content }, this.#hash);
  }
}

/**
 * Returns the text of a commit that its hash covers, with the hashes of the contents that it refers to. JSON texts
 * contain no line feed, which separates the parts.
 */
function coveredText({ body, refs }: Pick<LinkedText, "body" | "refs">): string {
  return refs === null ? body : `${body}\n${refs}`;
}

function keyedHash(key: string | Uint8Array): Hash {
  return (content) => createHmac("sha256", key).update(content).digest("base64url");
}
