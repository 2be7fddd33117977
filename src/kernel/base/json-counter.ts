import { Fault } from "./fault.ts";
import { deepestJson } from "./json.ts";
import type { JsonValue } from "./json-value.ts";

/**
 * Maximum number of values in JSON that comes from outside, such as the body of a request, the reply of a model,
 * the result of a tool or a message of MCP. The whole value and each member of an object or array count as one. The
 * limit exists because every part of the process that reads the JSON visits each value, so that very many small
 * values would delay all other runs.
 */
export const maxJsonValues = 100_000;

/** Creates the fault for JSON with too many values. `where` names the JSON. */
export function tooManyValues(where: string, maxValues = maxJsonValues): Fault {
  return new Fault(
    "too_large",
    `${where} has more than ${maxValues} JSON values; send fewer at once, or put the data into a file and pass a reference to it`,
    { details: { maxJsonValues: maxValues } },
  );
}

/**
 * Subtracts the number of values in a JSON value from `left` and returns what remains. Stops as soon as the result
 * is negative. A value that is nested deeper than `levels` also gives a negative result.
 */
export function valuesLeft(value: JsonValue | undefined, left: number, levels = deepestJson): number {
  let rest = left - 1;
  if (typeof value !== "object" || value === null) return rest;
  if (levels === 0) return -1;
  if (Array.isArray(value)) {
    const items = value as readonly JsonValue[];
    for (let index = 0; index < items.length && rest >= 0; index++)
      rest = valuesLeft(items[index], rest, levels - 1);
    return rest;
  }
  const members = value as Readonly<Record<string, JsonValue>>;
  for (const key in members) {
    if (rest < 0) return rest;
    rest = valuesLeft(members[key], rest, levels - 1);
  }
  return rest;
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openArray, closeArray, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];
const [space, lineEnd, carriageReturn] = [0x20, 0x0a, 0x0d];

/**
 * Counts the values and levels of a JSON text in UTF-8 while its bytes arrive, before it is parsed. It does not
 * check that the text is JSON; the parser refuses other texts, at a lower cost.
 */
export class JsonCounter {
  readonly #where: string;
  readonly #maxDepth: number;
  readonly #maxValues: number;
  #values = 1;
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  /** Whether the last byte opened an object or an array that has no member yet. */
  #isOpened = false;

  /** `where` names the text in errors. `maxDepth` is the maximum depth of nested objects and arrays. */
  constructor(where: string, maxDepth = Infinity, maxValues = maxJsonValues) {
    this.#where = where;
    this.#maxDepth = maxDepth;
    this.#maxValues = maxValues;
  }

  /** Number of values so far. */
  get values(): number {
    return this.#values;
  }

  /** Counts the next bytes. Throws `too_large` for too many values, and `invalid_argument` for too many levels. */
  add(bytes: Uint8Array): void {
    let [values, depth] = [this.#values, this.#depth];
    let [isInText, isEscaped, isOpened] = [this.#isInText, this.#isEscaped, this.#isOpened];
    const maxValues = this.#maxValues;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      if (isInText) {
        if (isEscaped) isEscaped = false;
        else if (byte === backslash) isEscaped = true;
        // A text of JSON contains no line end. Lines of an event stream that are not JSON may contain one quote.
        else if (byte === quote || byte === lineEnd || byte === carriageReturn) isInText = false;
        continue;
      }
      if (byte <= space) continue;
      if (byte === closeArray || byte === closeObject) {
        depth--;
        isOpened = false;
        continue;
      }
      // The first member has no comma before it.
      if (isOpened || byte === comma) values++;
      isOpened = byte === openArray || byte === openObject;
      if (isOpened) depth++;
      else isInText = byte === quote;
      if (values > maxValues) throw tooManyValues(this.#where, maxValues);
      if (depth > this.#maxDepth) throw this.#tooDeep();
    }
    [this.#values, this.#depth] = [values, depth];
    [this.#isInText, this.#isEscaped, this.#isOpened] = [isInText, isEscaped, isOpened];
  }

  #tooDeep(): Fault {
    return new Fault(
      "invalid_argument",
      `${this.#where} is nested deeper than ${this.#maxDepth} levels; send a flatter value`,
    );
  }
}
