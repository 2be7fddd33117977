import { createHmac } from "node:crypto";
import { chainHead, type ChainLink, type Hash } from "../../../kernel/index.ts";

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

  /** Stands for the text of a commit's row. */
  content(body: string): string {
    return this.#hash(body);
  }

  head(before: string, link: ChainLink): string {
    return chainHead(before, link, this.#hash);
  }
}
