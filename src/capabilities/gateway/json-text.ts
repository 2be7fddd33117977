/** The place of a member's value in a JSON text. */
interface MemberPlace {
  readonly start: number;
  readonly end: number;
}

/** The members of one object of a JSON text, by name, and the names that occur more than once. */
interface ObjectPlaces {
  /** Index after the opening brace. */
  readonly inside: number;
  readonly members: ReadonlyMap<string, MemberPlace>;
  readonly repeated: readonly string[];
}

/**
 * A JSON text that can be changed in single members, while every other byte stays as it is. The text must be valid JSON,
 * and an object on its top level.
 */
export class JsonText {
  readonly text: string;
  readonly #top: ObjectPlaces;

  constructor(text: string) {
    this.text = text;
    this.#top = readObject(text, skipSpace(text, 0));
  }

  /** Names that occur twice in the object at `path`. Readers disagree about which of the two values counts. */
  repeated(path: readonly string[] = []): readonly string[] {
    return this.#object(path)?.repeated ?? [];
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
  const repeated: string[] = [];
  let at = skipSpace(text, open + 1);
  while (text[at] === '"') {
    const afterName = skipString(text, at);
    const name = JSON.parse(text.slice(at, afterName)) as string;
    const start = skipSpace(text, skipSpace(text, afterName) + 1);
    const end = skipValue(text, start);
    if (members.has(name)) repeated.push(name);
    members.set(name, { start, end });
    at = skipSpace(text, end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return { inside: open + 1, members, repeated };
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
