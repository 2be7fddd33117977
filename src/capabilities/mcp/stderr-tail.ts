/** Keeps the last characters of a server's standard error for error messages. */
export class StderrTail {
  readonly #limit: number;
  #text = "";

  constructor(limit = 2_000) {
    this.#limit = limit;
  }

  /** Adds a piece of output. */
  add(chunk: string): void {
    this.#text = (this.#text + chunk).slice(-this.#limit);
  }

  /** The kept output as the end of an error message. Empty if there is no output. */
  get suffix(): string {
    const text = this.#text.trim();
    return text === "" ? "" : `. Its standard error ends with: ${text}`;
  }
}
