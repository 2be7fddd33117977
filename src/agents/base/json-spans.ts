/**
 * Maximum nesting of lists and objects. Real plans are less deep, and the recursive scanner needs a limit for the
 * call stack.
 */
const maxDepth = 200;
const opening = /[[{]/gu;
const blanks = " \t\n\r";
const atom = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/uy;

/**
 * Yields the complete JSON lists and objects inside a text. None of them is part of another one. An incomplete list
 * yields nothing, because its first part would look like the whole. Takes time linear in the length of the text.
 */
export function* jsonSpansIn(text: string): Iterable<string> {
  for (let from = 0; ;) {
    opening.lastIndex = from;
    const opened = opening.exec(text);
    if (opened === null) return;
    const reading = new JsonScanner(text, opened.index);
    if (reading.value(maxDepth)) yield text.slice(opened.index, reading.position).trimEnd();
    from = reading.resumeAt;
  }
}

/** Scans from an opening bracket to the matching closing one, or to the first position that is not JSON. */
class JsonScanner {
  readonly #text: string;
  position: number;
  /** Start of the string that was scanned last. -1 if the last token was not a string. */
  #string = -1;

  constructor(text: string, at: number) {
    this.#text = text;
    this.position = at;
  }

  /**
   * Position at which the search for the next span continues. A syntax error ends all open brackets, so that the
   * search continues after it. A quotation mark just before the error may belong to ordinary text, so that a
   * supposed string is scanned again, at most once.
   */
  get resumeAt(): number {
    return this.#string < 0 ? this.position : this.#string + 1;
  }

  value(depth: number): boolean {
    if (this.#take("[")) return depth > 0 && (this.#take("]") || this.#items(depth));
    if (this.#take("{")) return depth > 0 && (this.#take("}") || this.#members(depth));
    return this.#text.charAt(this.position) === '"' ? this.#takeString() : this.#takeAtom();
  }

  #items(depth: number): boolean {
    do if (!this.value(depth - 1)) return false;
    while (this.#take(","));
    return this.#take("]");
  }

  #members(depth: number): boolean {
    do if (!this.#takeString() || !this.#take(":") || !this.value(depth - 1)) return false;
    while (this.#take(","));
    return this.#take("}");
  }

  #take(char: string): boolean {
    if (this.#text.charAt(this.position) !== char) return false;
    this.#goTo(this.position + 1);
    return true;
  }

  #takeAtom(): boolean {
    atom.lastIndex = this.position;
    if (!atom.test(this.#text)) return false;
    this.#goTo(atom.lastIndex);
    return true;
  }

  #takeString(): boolean {
    const from = this.position;
    if (this.#text.charAt(from) !== '"') return false;
    this.#string = from;
    for (let at = from + 1; at < this.#text.length; at++) {
      const char = this.#text.charAt(at);
      if (char === '"') {
        this.#goTo(at + 1, from);
        return true;
      }
      if (char < " ") return false;
      if (char === "\\") at++;
    }
    return false;
  }

  #goTo(at: number, string = -1): void {
    this.#string = string;
    this.position = at;
    while (this.position < this.#text.length && blanks.includes(this.#text.charAt(this.position)))
      this.position++;
  }
}
