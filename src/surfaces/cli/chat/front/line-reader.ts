import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

/** Value to which the wait for the next line resolves if another event happens first. */
export const other = Symbol("other");

/** Maximum number of waiting lines. When there are more, the source is paused. */
const mostWaiting = 1_000;

/**
 * The lines of stdin, one after the other. Only a line feed ends a line: JSON and texts may contain U+2028 and U+2029, at
 * which `node:readline` splits, too.
 */
export class LineReader {
  readonly #source: Readable;
  readonly #decoder = new StringDecoder("utf8");
  readonly #waiting: string[] = [];
  /** The beginning of a line whose end has not arrived. */
  #begun = "";
  #isOver = false;
  #wake: () => void = () => undefined;

  constructor(source: Readable = process.stdin) {
    this.#source = source;
  }

  /** Begins to read, unless the reader was closed before. */
  open(): void {
    if (this.#isOver) return;
    this.#source
      .on("data", this.#add)
      .on("end", this.#finish)
      .on("close", this.#finish)
      .on("error", this.#finish)
      .resume();
  }

  /**
   * Returns the next line, `undefined` at the end of the input, or `other` if `isOther` returns `true` first.
   * `isOther` is called again after each `wake()`.
   */
  async next(isOther: () => boolean = () => false): Promise<string | undefined | typeof other> {
    for (;;) {
      const line = this.#waiting.shift();
      if (this.#waiting.length === 0 && !this.#isOver && this.#source.isPaused()) this.#source.resume();
      if (line !== undefined) return line;
      if (isOther()) return other;
      if (this.#isOver) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  wake(): void {
    this.#wake();
  }

  /** Stops reading. Lines that have arrived but were not read are dropped. */
  close(): void {
    this.#source
      .off("data", this.#add)
      .off("end", this.#finish)
      .off("close", this.#finish)
      .off("error", this.#finish)
      .pause();
    this.#waiting.length = 0;
    this.#isOver = true;
    this.wake();
    if (this.#source === process.stdin) process.stdin.unref?.();
  }

  readonly #add = (piece: Buffer | string): void => {
    const [first = "", ...others] = this.#decoder.write(piece).split("\n");
    this.#begun += first;
    for (const next of others) {
      this.#waiting.push(this.#begun.replace(/\r$/u, ""));
      this.#begun = next;
    }
    if (this.#waiting.length > mostWaiting) this.#source.pause();
    if (others.length > 0) this.wake();
  };

  readonly #finish = (): void => {
    if (this.#isOver) return;
    this.#isOver = true;
    const last = this.#begun + this.#decoder.end();
    if (last !== "") this.#waiting.push(last.replace(/\r$/u, ""));
    this.wake();
  };
}
