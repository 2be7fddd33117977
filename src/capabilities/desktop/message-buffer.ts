import { Fault } from "../../kernel/index.ts";

/**
 * Received bytes that have not been read yet. The pieces are joined only when a message is complete, because a
 * screenshot arrives in hundreds of pieces.
 */
export class MessageBuffer {
  /** Maximum size of one message, in bytes. */
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #length = 0;

  constructor(mostBytes: number) {
    this.#maxBytes = mostBytes;
  }

  /** Adds received bytes. */
  add(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#pieces.push(bytes);
    this.#length += bytes.length;
  }

  /** Returns at least `length` bytes without removing them, or `undefined` if fewer have been received. */
  peek(length: number): Buffer | undefined {
    if (this.#length < length) return undefined;
    const [first] = this.#pieces;
    return first !== undefined && first.length >= length ? first : this.#join();
  }

  /**
   * Removes and returns a message of `length` bytes, or returns `undefined` if it is incomplete. Throws if the length
   * exceeds the limit, before the message fills the memory.
   */
  take(length: number): Buffer | undefined {
    if (length > this.#maxBytes)
      throw new Fault(
        "unsupported",
        `a message of ${length} bytes exceeds the limit of ${this.#maxBytes} bytes`,
      );
    if (this.#length < length) return undefined;
    const all = this.#join();
    this.#pieces = [all.subarray(length)];
    this.#length -= length;
    return all.subarray(0, length);
  }

  #join(): Buffer {
    const all =
      this.#pieces.length === 1 ? (this.#pieces[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#pieces);
    this.#pieces = [all];
    return all;
  }
}
