import type { ChatMessage } from "./chat-message.ts";
import type { Hash } from "../base/sources.ts";
import { Fault } from "../base/fault.ts";
import { digestText } from "../base/json.ts";

/** Messages and their digests, shared by all transcripts that continue the same list of messages. */
interface Chain {
  readonly messages: ChatMessage[];
  /** Digests by hash function. `digests[n]` covers the first n + 1 messages. Computed when they are first needed. */
  digests: string[];
  hash: Hash | undefined;
}

/**
 * An append-only conversation with a digest (J4). A transcript is a value: `append` returns a new one and does not
 * change this one. Appending to the newest transcript of a chain costs O(new messages); appending to an older one
 * copies the messages.
 *
 * A digest is computed on first need. Each digest includes the one before it, so that only new messages are hashed.
 * F2: apart from the request that the model is sent, the cost of a turn does not grow with the number of turns.
 * Compaction starts a new chain with `Transcript.of`.
 *
 * @example
 * ```ts
 * import { Transcript, userMessage } from "reeve/kernel";
 *
 * const question = Transcript.of([userMessage("What is six times seven?")]);
 * const longer = question.append(userMessage("Answer with a number."));
 * console.log(question.length, longer.length); // 1 2
 * ```
 */
export class Transcript implements Iterable<ChatMessage> {
  /** The transcript without messages. */
  static readonly empty: Transcript = new Transcript({ messages: [], digests: [], hash: undefined }, 0);
  readonly #chain: Chain;
  /** Number of messages. */
  readonly length: number;

  private constructor(chain: Chain, length: number) {
    this.#chain = chain;
    this.length = length;
    Object.freeze(this);
  }

  /** Creates a transcript with these messages and a new digest chain. */
  static of(messages: Iterable<ChatMessage>): Transcript {
    const copy = [...messages];
    return new Transcript({ messages: copy, digests: [], hash: undefined }, copy.length);
  }

  /** Returns a transcript with these messages added at the end. Without messages, returns this transcript. */
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

  /**
   * Whether this transcript begins with the messages of another one. Costs O(1) if both continue the same chain, otherwise
   * O(messages of `earlier`).
   */
  startsWith(earlier: Transcript): boolean {
    const length = earlier.length;
    if (length > this.length) return false;
    const own = this.#chain.messages;
    const other = earlier.#chain.messages;
    if (own === other) return true;
    // From the end: transcripts that differ do so in their last messages first, after a compaction.
    for (let index = length - 1; index >= 0; index--) if (own[index] !== other[index]) return false;
    return true;
  }

  /** Returns the message at a position. A negative position counts from the end. */
  at(index: number): ChatMessage | undefined {
    const place = index < 0 ? this.length + index : index;
    return place < this.length ? this.#chain.messages[place] : undefined;
  }

  /** Returns the messages from position `start` to the end as a new array. A negative position counts from the end. */
  slice(start = 0): readonly ChatMessage[] {
    return this.#chain.messages.slice(start < 0 ? Math.max(0, this.length + start) : start, this.length);
  }

  /** Returns a transcript with the first `length` messages. */
  upTo(length: number): Transcript {
    return length >= this.length ? this : new Transcript(this.#chain, Math.max(0, length));
  }

  /** Returns `first` followed by all messages as a new array. */
  precededBy(first: ChatMessage): readonly ChatMessage[] {
    const { messages } = this.#chain;
    const own = messages.length === this.length ? messages : messages.slice(0, this.length);
    return own.toSpliced(0, 0, first);
  }

  /** Iterates over the messages, oldest first. */
  *[Symbol.iterator](): Iterator<ChatMessage> {
    for (let index = 0; index < this.length; index++) {
      const message = this.at(index);
      if (message !== undefined) yield message;
    }
  }

  /** Returns the digest of all messages. Equal messages have equal digests in every process that uses the same hash. */
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

  /**
   * Whether the message at `index` contains the results of the assistant message before it. Both messages are
   * hashed in one call, because the digest between them is rarely needed.
   */
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
    const message = `${previous}\n${digestText(messages[first], hash)}`;
    return (digests[index] = hash(isResult ? `${message}\n${digestText(messages[index], hash)}` : message));
  }

  /** Returns the messages as an array, for `JSON.stringify`. */
  toJSON(): readonly ChatMessage[] {
    return this.slice();
  }
}

const appended = "session.messages = session.messages.append(message)";
const replaced = "session.messages = Transcript.of(messages)";

/**
 * Methods of arrays that a transcript does not have, with the text that says what to write instead. They are not
 * part of the type.
 */
const methodsOfArrays = {
  push: appended,
  concat: appended,
  unshift: replaced,
  pop: replaced,
  shift: replaced,
  splice: replaced,
  map: "transcript.slice().map(...)",
  filter: "transcript.slice().filter(...)",
  find: "transcript.slice().find(...)",
  findLast: "transcript.slice().findLast(...)",
  some: "transcript.slice().some(...)",
  every: "transcript.slice().every(...)",
  reduce: "transcript.slice().reduce(...)",
  forEach: "for (const message of transcript)",
} as const;

for (const [method, use] of Object.entries(methodsOfArrays))
  Object.defineProperty(Transcript.prototype, method, {
    value(): never {
      throw new Fault(
        "unsupported",
        `a Transcript, such as session.messages, has no method ${method}(), because it never changes; use ${use}`,
      );
    },
  });
