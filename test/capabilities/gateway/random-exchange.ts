/** Random numbers from 0 to below 1 that follow from a seed (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let value = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from 0 to below `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end);
  }

  pick<Value>(values: readonly Value[]): Value {
    return values[this.below(values.length)] as Value;
  }

  shuffled<Value>(values: readonly Value[]): Value[] {
    const rest = [...values];
    return values.map(() => rest.splice(this.below(rest.length), 1)[0] as Value);
  }
}

/** Texts with which a parser could fail. */
const odd = [
  "\\",
  '"',
  '\\"}',
  '{"max_tokens":1}',
  "usage",
  "\u2028",
  "é",
  "😀",
  "\0",
  "\r\n\r\n",
  "data: x",
  " ",
  "[",
];

export function randomText(random: Random): string {
  return Array.from({ length: random.below(12) }, () =>
    random.next() < 0.5 ? random.pick(odd) : String.fromCodePoint(32 + random.below(0x2000)),
  ).join("");
}

function randomValue(random: Random, depth: number): unknown {
  const kind = random.below(depth === 0 ? 4 : 6);
  if (kind === 0) return randomText(random);
  if (kind === 1) return random.pick([0, -1.5e-7, 1e21, 12_345, 0.1]);
  if (kind === 2) return random.pick([true, false, null]);
  if (kind === 3) return "";
  const values = Array.from({ length: random.below(4) }, () => randomValue(random, depth - 1));
  if (kind === 4) return values;
  return Object.fromEntries(values.map((value, index) => [`${randomText(random)}${index}`, value]));
}

/** An object of any content, for members whose content the gateway does not read. */
export function randomObject(random: Random): object {
  const count = 1 + random.below(5);
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`${randomText(random)}${index}`, randomValue(random, 3)]),
  );
}

/** Writes a value as JSON with random spaces, escapes and orders of members. */
export function writeJson(random: Random, value: unknown): string {
  const space = (): string => random.pick(["", "", "", " ", "\n", "\t ", "\r\n"]);
  const text = (content: string): string =>
    JSON.stringify(content).replace(/[a-z]/g, (letter, at: number, all: string) =>
      random.next() < 0.05 && isPlain(all, at)
        ? `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`
        : letter,
    );
  const write = (each: unknown): string => {
    if (typeof each === "string") return text(each);
    if (Array.isArray(each)) return `[${each.map((item) => space() + write(item) + space()).join(",")}]`;
    if (typeof each !== "object" || each === null) return JSON.stringify(each);
    const members = random.shuffled(Object.entries(each));
    return `{${space()}${members.map(([name, item]) => `${text(name)}${space()}:${space()}${write(item)}${space()}`).join(",")}}`;
  };
  return space() + write(value) + space();
}

/** Whether the letter of a JSON text at this place is no part of an escape. */
function isPlain(text: string, at: number): boolean {
  const escape = /\\(?:u[0-9a-f]{0,4}|.)$/s.exec(text.slice(Math.max(0, at - 5), at + 1));
  return escape === null;
}

/** Cuts bytes at random places. */
export function randomPieces(random: Random, bytes: Buffer): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + 1 + random.below(random.pick([1, 3, 20, 400]));
    pieces.push(bytes.subarray(at, end));
    at = end;
  }
  return pieces;
}

/** Bytes that are no UTF-8, as a broken provider may send in a text. */
export const brokenText = Buffer.from([0xc3, 0x28, 0xff, 0xfe, 0xe2, 0x82]);

/** The events of a stream as bytes, one by one, with a random end of line. Comments and names of events are among them. */
export function randomEvents(random: Random, events: readonly unknown[]): Buffer[] {
  const end = random.pick(["\n", "\r\n", "\r"]);
  return events.map((event) => {
    const data = typeof event === "string" ? event : JSON.stringify(event);
    const extra = random.pick(["", "", `event: x${end}`, `: a comment${end}`]);
    const text = Buffer.from(`${extra}data: ${data}`);
    const broken = random.next() < 0.2 ? Buffer.from(`${end}: `) : undefined;
    const parts = broken === undefined ? [text] : [text, broken, brokenText];
    return Buffer.concat([...parts, Buffer.from(end + end)]);
  });
}
