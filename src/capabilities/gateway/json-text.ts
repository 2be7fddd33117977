/** The place of a member in a JSON text: its name, and the start and end of its value. */
interface MemberPlace {
  readonly name: number;
  readonly start: number;
  readonly end: number;
}

/** The members of one object of a JSON text, by name. */
interface ObjectPlaces {
  /** Index after the opening brace. */
  readonly inside: number;
  readonly members: ReadonlyMap<string, MemberPlace>;
}

/**
 * A JSON text in which single members can be changed, while every other byte stays the same. The text must be valid
 * JSON with an object on its top level.
 */
export class JsonText {
  readonly text: string;
  readonly #top: ObjectPlaces;

  constructor(text: string) {
    this.text = text;
    this.#top = readObject(text, skipSpace(text, 0));
  }

  /**
   * Returns the name of a member that occurs twice in an object of the text, because readers differ in which of the
   * two they use.
   */
  repeated(): string | undefined {
    return repeatedIn(this.text);
  }

  /** Returns an object with the members of these names. */
  pick(names: readonly string[]): string {
    const picked = names.flatMap((name) => {
      const place = this.#top.members.get(name);
      return place === undefined
        ? []
        : [`${JSON.stringify(name)}:${this.text.slice(place.start, place.end)}`];
    });
    return `{${picked.join(",")}}`;
  }

  /** Returns the text with another name and value of a member of the top level. */
  renamed(from: string, to: string, value: string): JsonText {
    const place = this.#top.members.get(from);
    return place === undefined
      ? this
      : this.#spliced(place.name, place.end, `${JSON.stringify(to)}:${value}`);
  }

  /** Returns the text with another value of the member at `path`, which is added if it is absent. */
  with(path: readonly string[], value: string): JsonText {
    const [name = "", ...deeper] = path.toReversed();
    const around = deeper.toReversed();
    const object = this.#object(around);
    if (object === undefined) return this.with(around, `{${JSON.stringify(name)}:${value}}`);
    const place = object.members.get(name);
    if (place !== undefined) return this.#spliced(place.start, place.end, value);
    const comma = object.members.size === 0 ? "" : ",";
    return this.#spliced(object.inside, object.inside, `${JSON.stringify(name)}:${value}${comma}`);
  }

  #spliced(start: number, end: number, value: string): JsonText {
    return new JsonText(`${this.text.slice(0, start)}${value}${this.text.slice(end)}`);
  }

  #object(path: readonly string[]): ObjectPlaces | undefined {
    let object = this.#top;
    for (const name of path) {
      const place = object.members.get(name);
      if (place === undefined || this.text[place.start] !== "{") return undefined;
      object = readObject(this.text, place.start);
    }
    return object;
  }
}

function readObject(text: string, open: number): ObjectPlaces {
  const members = new Map<string, MemberPlace>();
  let at = skipSpace(text, open + 1);
  while (text[at] === '"') {
    const afterName = skipString(text, at);
    const name = JSON.parse(text.slice(at, afterName)) as string;
    const start = skipSpace(text, skipSpace(text, afterName) + 1);
    const end = skipValue(text, start);
    members.set(name, { name: at, start, end });
    at = skipSpace(text, end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return { inside: open + 1, members };
}

/** The names of an object around the current place. `null` for a list. */
type Names = Set<string> | null;

function repeatedIn(text: string): string | undefined {
  const around: Names[] = [];
  let names: Names = null;
  let isName = false;
  for (let at = 0; at < text.length;) {
    const letter = text[at];
    if (letter === '"') {
      const end = skipString(text, at);
      if (isName && names !== null) {
        const name = nameAt(text, at, end);
        if (names.has(name)) return name;
        names.add(name);
        isName = false;
      }
      at = end;
      continue;
    }
    if (letter === "{" || letter === "[") {
      around.push(names);
      names = letter === "{" ? new Set() : null;
      isName = letter === "{";
    } else if (letter === "}" || letter === "]") {
      names = around.pop() ?? null;
      isName = false;
    } else if (letter === ",") isName = names !== null;
    at++;
  }
  return undefined;
}

/** Returns a name in the text. Most names have no escape, and need no parser. */
function nameAt(text: string, open: number, end: number): string {
  const name = text.slice(open + 1, end - 1);
  return name.includes("\\") ? (JSON.parse(`"${name}"`) as string) : name;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (text[at] === " " || text[at] === "\n" || text[at] === "\r" || text[at] === "\t") at++;
  return at;
}

function skipString(text: string, open: number): number {
  for (let at = open + 1; ; at++) {
    const found = text.indexOf('"', at);
    let slashes = 0;
    while (text[found - 1 - slashes] === "\\") slashes++;
    if (slashes % 2 === 0) return found + 1;
    at = found;
  }
}

function skipValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length;) {
    const letter = text[at];
    if (letter === '"') at = skipString(text, at);
    else if (letter === "{" || letter === "[") {
      depth++;
      at++;
    } else if (letter === "}" || letter === "]") {
      if (depth === 0) return at;
      depth--;
      at++;
    } else if (letter === "," && depth === 0) return at;
    else at++;
    if (depth === 0 && (letter === '"' || letter === "}" || letter === "]")) return at;
  }
  return text.length;
}
