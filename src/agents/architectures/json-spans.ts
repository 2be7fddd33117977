/** Of lists and objects inside each other: nobody plans in more, and the stack bears it. */
const maxDepth = 200;
const opening = /[[{]/gu;
const blanks = " \t\n\r";
const atom = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/uy;

/**
 * The JSON lists and objects that stand among the words of a text, each whole and none inside another. Of one that breaks off nothing is
 * given: a part of it would pass for all of it. The time it takes is in proportion to the text, whatever that is.
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

/** From an opening bracket to the closing one, or to where it is no JSON. */
class JsonScanner {
  readonly #text: string;
  position: number;
  /** Where a string began that was the last to be read; -1: something else was. */
  #string = -1;

  constructor(text: string, at: number) {
    this.#text = text;
    this.position = at;
  }

  /**
   * Where to look on. Where it breaks it does so for every bracket that is open. But a quotation mark it broke behind may have been the
   * words' own: what was taken for a string is looked at again. No string begins there twice, so this is done once for each.
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
