import type { ChatMessage } from "./chat-message.ts";
import type { Hash } from "../base/hash.ts";
import { canonicalJson } from "../base/json.ts";

/** Messages and their digests, shared by every transcript that continues the same chain. */
interface Chain {
  readonly messages: ChatMessage[];
  /** Of the hash that was asked with last. `digests[n]` covers the first n + 1 messages; filled on first need, and empty until then. */
  digests: string[];
  hash: Hash | undefined;
}

/**
 * An append-only conversation that carries its digest (J4). A value: `append` gives a new transcript and leaves this one
 * as it was. Appending to the newest costs O(new messages); appending to an older one copies, since the two part ways.
 * A digest is computed when first asked for and covers, by chaining, every message before it, so hashing costs what is
 * new. Compaction starts a new chain with `Transcript.of`.
 */
export class Transcript implements Iterable<ChatMessage> {
  static readonly empty: Transcript = new Transcript({ messages: [], digests: [], hash: undefined }, 0);
  readonly #chain: Chain;
  readonly length: number;

  private constructor(chain: Chain, length: number) {
    this.#chain = chain;
    this.length = length;
    Object.freeze(this);
  }

  static of(messages: Iterable<ChatMessage>): Transcript {
    const copy = [...messages];
    return new Transcript({ messages: copy, digests: [], hash: undefined }, copy.length);
  }

  append(...messages: readonly ChatMessage[]): Transcript {
    if (messages.length === 0) return this;
    const newest = this.#chain.messages.length === this.length && this.length > 0;
    const chain = newest
      ? this.#chain
      : {
          messages: this.#chain.messages.slice(0, this.length),
          digests: this.#chain.digests.slice(0, this.length),
          hash: this.#chain.hash,
        };
    for (const message of messages) chain.messages.push(message);
    return new Transcript(chain, this.length + messages.length);
  }

  /** Negative counts from the end. */
  at(index: number): ChatMessage | undefined {
    const place = index < 0 ? this.length + index : index;
    return place < this.length ? this.#chain.messages[place] : undefined;
  }

  /** The messages from `start` on, as an array of their own. */
  slice(start = 0): readonly ChatMessage[] {
    return this.#chain.messages.slice(start < 0 ? Math.max(0, this.length + start) : start, this.length);
  }

  /** The messages after another, as an array of their own. */
  precededBy(first: ChatMessage): readonly ChatMessage[] {
    const { messages } = this.#chain;
    const own = messages.length === this.length ? messages : messages.slice(0, this.length);
    return own.toSpliced(0, 0, first);
  }

  *[Symbol.iterator](): Iterator<ChatMessage> {
    for (let index = 0; index < this.length; index++) {
      const message = this.at(index);
      if (message !== undefined) yield message;
    }
  }

  /** Equal for equal messages, in every process that uses the same hash. */
  digest(hash: Hash): string {
    if (this.#chain.hash !== hash) {
      this.#chain.digests = [];
      this.#chain.hash = hash;
    }
    const { digests } = this.#chain;
    const last = this.length - 1;
    for (let index = digests.length; index < last; index++)
      digests[index] = this.#isResult(index + 1) ? "" : this.#digestAt(index, hash);
    return last < 0 ? hash("") : this.#digestAt(last, hash);
  }

  /** Tool results that follow their message directly: hashed with it, at one go, for in most turns nobody asks in between. */
  #isResult(index: number): boolean {
    const { messages } = this.#chain;
    return messages[index]?.role === "tool" && messages[index - 1]?.role === "assistant";
  }

  #digestAt(index: number, hash: Hash): string {
    const { messages, digests } = this.#chain;
    const known = digests[index];
    if (known !== undefined && known !== "") return known;
    const isResult = this.#isResult(index);
    const first = isResult ? index - 1 : index;
    const previous = first === 0 ? "" : this.#digestAt(first - 1, hash);
    const message = `${previous}\n${canonicalJson(messages[first])}`;
    return (digests[index] = hash(isResult ? `${message}\n${canonicalJson(messages[index])}` : message));
  }

  toJSON(): readonly ChatMessage[] {
    return this.slice();
  }
}
