import { createHmac } from "node:crypto";
import { chainHead, contentHash, type Event, type Hash } from "../../../kernel/index.ts";

/** E1: how events are chained. With a key nobody without it can make a chain that fits; without one, anybody can. */
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

  contents(events: readonly Event[]): string[] {
    return events.map((event) => contentHash(event, this.#hash));
  }

  head(before: string, contents: readonly string[]): string {
    return contents.reduce((head, content) => chainHead(head, content, this.#hash), before);
  }
}
