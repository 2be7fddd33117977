/** Keeps the start and the end of a process's output. The middle is dropped, and its size is counted. */
export class OutputWindow {
  readonly #headBytes: number;
  readonly #tailBytes: number;
  readonly #head: Buffer[] = [];
  #headSize = 0;
  #tail: Buffer[] = [];
  #tailSize = 0;
  #total = 0;

  constructor(maxBytes: number) {
    this.#headBytes = Math.ceil(maxBytes / 2);
    this.#tailBytes = maxBytes - this.#headBytes;
  }

  /** Number of bytes that were added. */
  get total(): number {
    return this.#total;
  }

  /** Number of bytes that were dropped. */
  get cut(): number {
    return this.#total - this.#headSize - Math.min(this.#tailSize, this.#tailBytes);
  }

  /** Adds a piece of output. */
  add(chunk: Buffer): void {
    this.#total += chunk.length;
    const room = this.#headBytes - this.#headSize;
    const first = chunk.subarray(0, room);
    if (first.length > 0) {
      this.#head.push(first);
      this.#headSize += first.length;
    }
    if (first.length === chunk.length) return;
    this.#tail.push(chunk.subarray(first.length));
    this.#tailSize += chunk.length - first.length;
    // Joined only when it has grown enough, so that many small pieces do not cost a copy each.
    if (this.#tailSize > 2 * this.#tailBytes + 65_536) this.#trim();
  }

  /**
   * Returns the kept output. If the middle was dropped, a line says how many bytes; characters that were cut in two are
   * left out.
   */
  text(): string {
    this.#trim();
    const decoder = new TextDecoder();
    const head = Buffer.concat(this.#head);
    const tail = Buffer.concat(this.#tail);
    if (this.cut === 0) return decoder.decode(Buffer.concat([head, tail]));
    const start = decoder.decode(head).replace(/\uFFFD{1,3}$/, "");
    const end = new TextDecoder().decode(tail).replace(/^\uFFFD{1,3}/, "");
    return `${start}\n[${this.cut} bytes cut]\n${end}`;
  }

  #trim(): void {
    const tail = Buffer.concat(this.#tail);
    this.#tail = [Buffer.from(tail.subarray(Math.max(0, tail.length - this.#tailBytes)))];
    this.#tailSize = Math.min(tail.length, this.#tailBytes);
  }
}
