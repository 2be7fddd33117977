import { createHmac } from "node:crypto";
import { chainHead, type Erasure, type Hash } from "../../../../kernel/index.ts";
import type { CommitRow } from "../db/commit-row.ts";

/**
 * E1: how commits are chained. With a key nobody without it can make a chain that fits; without one, anybody can. What is hashed begins with
 * what it is hashed for: a head that someone keeps passes for no link and no seal.
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

  /** Stands for a commit and, through the link before it, for all before: the one hash that writing a commit takes. */
  link(before: string, { number, at, nextEvent, body }: Omit<CommitRow, "id" | "link" | "seal">): string {
    return this.#hash(`link\n${before}\n${number} ${at} ${nextEvent}\n${body}`);
  }

  /** Of a commit whose words are erased, so that nobody can work out its link: what that followed from, and what is left of the text. */
  seal(before: string, { number, at, nextEvent, link, body }: Omit<CommitRow, "id" | "seal">): string {
    return this.#hash(`seal\n${before}\n${number} ${at} ${nextEvent} ${link}\n${body}`);
  }

  /** Whether the row is what was written after this link, or what was left of it when its words were erased. */
  holds(before: string, row: CommitRow): boolean {
    return row.seal === null ? row.link === this.link(before, row) : row.seal === this.seal(before, row);
  }

  /**
   * Of a log, for those who keep it elsewhere. It covers each link, since texts may be gone from which one would follow from another, and
   * what each commit orders to be erased: without a key nothing else would tell an erasure from an edit.
   */
  head(before: string, row: Omit<CommitRow, "body" | "seal">, erases: readonly Erasure[] = []): string {
    const { number, at, nextEvent: nextSeq, link } = row;
    const content = erases.length === 0 ? link : `${link} ${JSON.stringify(erases)}`;
    return chainHead(`head\n${before}`, { number, at, nextSeq, content }, this.#hash);
  }
}
