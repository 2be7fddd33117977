import { Fault } from "../../kernel/index.ts";

/** Bytes that came and were not read yet. Joined only when a whole message is there: a picture comes in hundreds of pieces. */
export class InputWindow {
  /** Of one message. */
  readonly #mostBytes: number;
  #pieces: Buffer[] = [];
  #length = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  add(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#pieces.push(bytes);
    this.#length += bytes.length;
  }

  peek(length: number): Buffer | undefined {
    if (this.#length < length) return undefined;
    const [first] = this.#pieces;
    return first !== undefined && first.length >= length ? first : this.#join();
  }

  /** Refuses a message that is longer than any we ask for, before it fills the memory. */
  take(length: number): Buffer | undefined {
    if (length > this.#mostBytes)
      throw new Fault("unsupported", `a message of ${length} bytes is longer than any that is asked for`);
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
