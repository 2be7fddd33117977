/** What a server said on its standard error, so far as it may help whoever reads of its end: the last of it, bounded. */
export class LastWords {
  readonly #limit: number;
  #text = "";

  constructor(limit = 2_000) {
    this.#limit = limit;
  }

  add(chunk: string): void {
    this.#text = (this.#text + chunk).slice(-this.#limit);
  }

  /** With where it comes from, to be put at the end of a message; empty when nothing was said. */
  get remark(): string {
    const text = this.#text.trim();
    return text === "" ? "" : `. Its standard error ends: ${text}`;
  }
}
