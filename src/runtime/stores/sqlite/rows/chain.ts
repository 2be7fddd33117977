import { createHmac } from "node:crypto";
import { chainHead, type Erasure, type Hash } from "../../../../kernel/index.ts";
import type { CommitRow } from "../db/commit-row.ts";

/**
 * E1: the hash chain of commits. With a key, only its owners can compute a valid chain; without a key, anyone can. Each
 * hashed text begins with its purpose, so that a head can be used neither as a link nor as a seal.
 */
export class Chain {
  readonly keyed: boolean;
  readonly #hash: Hash;

  constructor(hash: Hash, auditKey: string | undefined) {
    this.keyed = auditKey !== undefined;
    this.#hash =
      auditKey === undefined
        ? hash
        : (content) => createHmac("sha256", auditKey).update(content).digest("base64url");
  }

  /**
   * Represents a commit and, through the link before it, all earlier commits. It is the only hash that a commit needs.
   */
  link(before: string, { number, at, nextEvent, body }: Omit<CommitRow, "id" | "link" | "seal">): string {
    return this.#hash(`link\n${before}\n${number} ${at} ${nextEvent}\n${body}`);
  }

  /**
   * For a commit whose text was erased, so that its link can no longer be computed: covers the original link and the
   * remaining text.
   */
  seal(before: string, { number, at, nextEvent, link, body }: Omit<CommitRow, "id" | "seal">): string {
    return this.#hash(`seal\n${before}\n${number} ${at} ${nextEvent} ${link}\n${body}`);
  }

  /** Whether the row is what was written after this link, or what an erasure left of it. */
  holds(before: string, row: CommitRow): boolean {
    return row.seal === null ? row.link === this.link(before, row) : row.seal === this.seal(before, row);
  }

  /**
   * The head of a log, for storage elsewhere. It covers each link, because a link cannot be recomputed after an
   * erasure, and the erasures that each commit orders: without a key nothing else would distinguish an erasure from an
   * edit.
   */
  head(before: string, row: Omit<CommitRow, "body" | "seal">, erases: readonly Erasure[] = []): string {
    const { number, at, nextEvent: nextSeq, link } = row;
    const content = erases.length === 0 ? link : `${link} ${JSON.stringify(erases)}`;
    return chainHead(`head\n${before}`, { number, at, nextSeq, content }, this.#hash);
  }
}
