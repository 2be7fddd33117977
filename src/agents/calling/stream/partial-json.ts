import type { JsonValue } from "../../../kernel/index.ts";

/** A value of which only a part has arrived. Members may be missing, and texts and lists may be incomplete. */
export type PartialValue<Value> = Value extends readonly (infer Item)[]
  ? readonly PartialValue<Item>[]
  : Value extends object
    ? { readonly [Key in keyof Value]?: PartialValue<Value[Key]> }
    : Value;

type Container = JsonValue[] | Record<string, JsonValue>;

/** An object or list that is not closed yet. */
interface OpenContainer {
  readonly value: Container;
  /** The key for the next value. `undefined` in a list, and in an object before a key. */
  key: string | undefined;
}

const escapes: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/**
 * Parses an object or a list while its text arrives. Text before and after it, such as a code fence, is skipped. Each
 * character is read once.
 *
 * A text value grows with each piece. A key, a number or a literal appears when it is complete, because `12` may become
 * `123`.
 */
export class PartialJson {
  readonly #opensWith: string;
  #root: Container | undefined;
  #open: OpenContainer[] = [];
  /** The text that is being read, decoded. `undefined` outside a text. */
  #text: string | undefined;
  /** An escape sequence that is not complete, with its backslash. */
  #escape = "";
  /** The number or literal that is being read. */
  #word = "";
  #hasChanged = false;

  /** `opensWith` contains the characters that may start the value: `{`, `[` or both. */
  constructor(opensWith = "{[") {
    this.#opensWith = opensWith;
  }

  /** Reads the next piece of the text. Returns whether the value has changed. */
  push(piece: string): boolean {
    this.#hasChanged = false;
    for (const character of piece) this.#read(character);
    return this.#hasChanged;
  }

  /** A copy of the value so far, or `undefined` before it starts. Closed parts are shared between copies. */
  get value(): JsonValue | undefined {
    if (this.#root === undefined) return undefined;
    if (this.#open.length === 0) return this.#root;
    let below: JsonValue | undefined = this.#text;
    for (const { value, key } of this.#open.toReversed()) {
      const copy: Container = Array.isArray(value) ? [...value] : { ...value };
      if (below !== undefined) put(copy, key, below);
      below = copy;
    }
    return below;
  }

  #read(character: string): void {
    if (this.#open.length === 0) this.#start(character);
    else if (this.#text !== undefined) this.#readText(this.#text, character);
    else if (/[-+.\w]/u.test(character)) this.#word += character;
    else this.#readMark(character);
  }

  #start(character: string): void {
    if (!this.#opensWith.includes(character)) return;
    const value = character === "{" ? {} : [];
    this.#root = value;
    this.#open = [{ value, key: undefined }];
    this.#hasChanged = true;
  }

  #readText(text: string, character: string): void {
    if (this.#escape !== "") this.#readEscape(text, character);
    else if (character === "\\") this.#escape = character;
    else if (character === '"') this.#endText(text);
    else this.#grow(text + character);
  }

  #grow(text: string): void {
    this.#text = text;
    const last = this.#open.at(-1);
    if (Array.isArray(last?.value) || last?.key !== undefined) this.#hasChanged = true;
  }

  #readEscape(text: string, character: string): void {
    const escape = this.#escape + character;
    const isUnicode = escape[1] === "u";
    if (isUnicode && escape.length < 6) {
      this.#escape = escape;
      return;
    }
    this.#escape = "";
    this.#grow(
      text +
        (isUnicode
          ? String.fromCharCode(Number.parseInt(escape.slice(2), 16))
          : (escapes[character] ?? character)),
    );
  }

  #endText(text: string): void {
    this.#text = undefined;
    const last = this.#open.at(-1);
    if (last === undefined) return;
    if (!Array.isArray(last.value) && last.key === undefined) last.key = text;
    else this.#add(text);
  }

  /** Reads a character between values. Text that is not JSON ends the value; a later value may replace it. */
  #readMark(character: string): void {
    if (this.#word !== "" && !this.#endWord()) {
      this.#open = [];
      return;
    }
    if (character === '"') this.#grow("");
    else if (character === "{" || character === "[") {
      this.#open.push({ value: character === "{" ? {} : [], key: undefined });
      this.#hasChanged = true;
    } else if (character === "}" || character === "]") this.#close();
  }

  #endWord(): boolean {
    const word = this.#word;
    this.#word = "";
    const isNumber = /^-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/u.test(word);
    if (!isNumber && word !== "true" && word !== "false" && word !== "null") return false;
    this.#add(JSON.parse(word) as JsonValue);
    return true;
  }

  #close(): void {
    const closed = this.#open.pop();
    if (closed !== undefined && this.#open.length > 0) this.#add(closed.value);
    this.#hasChanged = true;
  }

  #add(value: JsonValue): void {
    const last = this.#open.at(-1);
    if (last === undefined) return;
    put(last.value, last.key, value);
    last.key = undefined;
    this.#hasChanged = true;
  }
}

/** Adds a value to a list, or sets the member of an object, also if its key is `__proto__`. */
function put(container: Container, key: string | undefined, value: JsonValue): void {
  if (Array.isArray(container)) container.push(value);
  else if (key !== undefined)
    Object.defineProperty(container, key, { value, writable: true, enumerable: true, configurable: true });
}
