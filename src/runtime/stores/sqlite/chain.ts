import { createHmac } from "node:crypto";
import { chainHead, type Hash } from "../../../kernel/index.ts";
import type { CommitRow } from "./commit-rows.ts";

/** E1: how commits are chained. With a key nobody without it can make a chain that fits; without one, anybody can. */
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
    return this.#hash(`${before}\n${number} ${at} ${nextEvent}\n${body}`);
  }

  /** Made while the text is there, of a commit whose link nobody can work out when it is erased: what it was linked to. */
  seal(before: string, row: Omit<CommitRow, "body" | "seal">): string {
    return this.head(before, row);
  }

  /** Whether the row is what was written after this link, but for what is left of a text that was erased. */
  holds(before: string, row: CommitRow): boolean {
    return row.seal === null ? row.link === this.link(before, row) : row.seal === this.seal(before, row);
  }

  /** Of a log, for those who keep it elsewhere. It covers each link, since texts may be gone from which one would follow from another. */
  head(before: string, row: Omit<CommitRow, "body" | "seal">): string {
    const { number, at, nextEvent: nextSeq, link: content } = row;
    return chainHead(before, { number, at, nextSeq, content }, this.#hash);
  }
}
