import {
  deepestJson,
  Fault,
  maxJsonValues,
  tooManyValues,
  valuesLeft,
  type AssistantPart,
  type JsonObject,
  type JsonValue,
  type LlmReply,
  type UserPart,
} from "../../kernel/index.ts";

/** Maximum number of bytes that JSON needs for one UTF-16 code unit, as in `\\u001f`. */
const bytesPerUnit = 6;
/** Maximum number of bytes in the JSON text of a number, a boolean or `null`. */
const bytesOfScalar = 30;
/** Upper bound of the bytes of the members of a reply, without the parts of its message. */
const bytesOfReply = 1_200;
/** Upper bound of the bytes of the members of a message part, without its text. */
const bytesOfPart = 96;
/** Upper bound of the number of values in a message part, without the arguments of a call. */
const valuesOfPart = 6;

/**
 * Limits of the metadata of a run. They are low, because every list of runs contains the metadata, and the database
 * has a row for every label in it.
 */
const maxMetadata = { bytes: 65_536, values: 1_000 };

/** Throws `too_large` if metadata, which is JSON, exceeds its limits. `where` names the metadata in the error. */
export function assertMetadataSize(metadata: JsonObject, where: string): void {
  const { bytes, values } = maxMetadata;
  if (valuesLeft(metadata, values) >= 0 && Buffer.byteLength(JSON.stringify(metadata)) <= bytes) return;
  throw new Fault(
    "too_large",
    `${where} is too large: it may have ${bytes} bytes of JSON and ${values} values; put the data into the input, or store it and pass its name`,
    { details: maxMetadata },
  );
}

/**
 * Limits the size of single values that enter a run: inputs, results of steps and tools, messages and signals.
 * Without this limit, one value could use all memory of the process. The size of a value is the number of bytes of
 * its JSON text in UTF-8. JSON from outside may also contain at most `maxJsonValues` values, because every part of
 * the process that reads it visits each of them.
 */
export class SizeLimit {
  readonly #maxBytes: number;
  /** Names the value that is counted. */
  #where = "";
  #maxValues = maxJsonValues;
  /** Lower bound (`#least`) and upper bound (`#most`) of the bytes counted so far, and the number of values. */
  #least = 0;
  #most = 0;
  #values = 0;

  constructor(maxBytes = 16 * 1024 * 1024) {
    this.#maxBytes = maxBytes;
  }

  /** Throws `too_large` if the value exceeds a limit. `where` names the value. Most values cost O(members), not O(characters). */
  assert(value: JsonValue, where: string, maxValues = maxJsonValues): void {
    this.#begin(where, maxValues);
    this.#add(value, 0);
    if (this.#values > maxValues) throw tooManyValues(where);
    if (this.#most <= this.#maxBytes) return;
    // A text takes at least one byte per unit, so a huge one is not serialised.
    const bytes = this.#least > this.#maxBytes ? this.#least : Buffer.byteLength(JSON.stringify(value));
    if (bytes > this.#maxBytes) throw this.#tooLarge(where, bytes);
  }

  /**
   * Checks the input of a run like `assert`. The metadata of a message part may have as many values as the metadata
   * of a run, because it is stored, checked and sent in several places.
   */
  assertInput(input: JsonValue, where: string): void {
    this.assert(input, where);
    if (!Array.isArray(input)) return;
    for (const part of input as readonly JsonValue[]) {
      const metadata = (part as Partial<UserPart> | null)?.providerMetadata as JsonValue | undefined;
      if (valuesLeft(metadata, maxMetadata.values) < 0)
        throw new Fault(
          "too_large",
          `the providerMetadata of a part of ${where} has more than ${maxMetadata.values} JSON values; put the data into the text of the part`,
          { details: { maxValues: maxMetadata.values } },
        );
    }
  }

  /** Checks a value that the code of an agent has computed, like `assert`. The number of its values is not limited. */
  assertBytes(value: JsonValue, where: string): void {
    this.assert(value, where, Infinity);
  }

  /**
   * Checks a reply like `assert`. It reads only the parts of the message that can be long, because every turn calls
   * it.
   */
  assertReply(reply: Pick<LlmReply, "message" | "model">, where: string): void {
    const { message, model } = reply;
    this.#begin(where, maxJsonValues);
    this.#most += bytesOfReply + bytesPerUnit * (model.provider.length + model.modelId.length);
    for (const part of message.content) this.#addPart(part);
    const isLarge = this.#most > this.#maxBytes || this.#values > maxJsonValues;
    if (isLarge || message.providerMetadata !== undefined) this.assert(reply as unknown as JsonValue, where);
  }

  /** Throws `too_large` if a text that is still being received is already longer than the limit allows. */
  assertLength(units: number, where: string): void {
    if (units > this.#maxBytes) throw this.#tooLarge(where, units);
  }

  #begin(where: string, maxValues: number): void {
    this.#where = where;
    this.#maxValues = maxValues;
    this.#least = 0;
    this.#most = 0;
    this.#values = 0;
  }

  #addPart(part: AssistantPart): void {
    const isPlain = part.providerMetadata === undefined;
    if (isPlain && (part.type === "text" || part.type === "reasoning")) {
      this.#values += valuesOfPart;
      this.#most += bytesOfPart + bytesPerUnit * part.text.length;
    } else if (isPlain && part.type === "tool_call") {
      this.#values += valuesOfPart;
      this.#most += bytesOfPart + bytesPerUnit * (part.callId.length + part.toolName.length);
      this.#add(part.input, 0);
    } else this.#add(part as unknown as JsonValue, 0);
  }

  /** Counts a value that is nested in `depth` others. Stops as soon as a limit is certainly exceeded. */
  #add(value: JsonValue | undefined, depth: number): void {
    this.#values++;
    if (typeof value === "string") {
      this.#least += value.length + 2;
      this.#most += bytesPerUnit * value.length + 2;
      return;
    }
    if (typeof value !== "object" || value === null) {
      this.#least += 1;
      this.#most += bytesOfScalar;
      return;
    }
    if (depth >= deepestJson) throw this.#tooDeep();
    this.#least += 2;
    this.#most += 2;
    if (Array.isArray(value)) {
      const items = value as readonly JsonValue[];
      this.#most += items.length;
      for (let index = 0; index < items.length && !this.#isExceeded(); index++)
        this.#add(items[index], depth + 1);
      return;
    }
    const record = value as Readonly<Record<string, JsonValue | undefined>>;
    for (const key in record) {
      if (this.#isExceeded()) return;
      const member = record[key];
      if (member === undefined) continue;
      this.#least += key.length + 3;
      this.#most += bytesPerUnit * key.length + 4;
      this.#add(member, depth + 1);
    }
  }

  #isExceeded(): boolean {
    return this.#values > this.#maxValues || this.#least > this.#maxBytes;
  }

  #tooDeep(): Fault {
    return new Fault(
      "not_json",
      `${this.#where} is nested deeper than ${deepestJson} levels; pass a flatter value, or its JSON text`,
    );
  }

  #tooLarge(where: string, bytes: number): Fault {
    const max = this.#maxBytes;
    return new Fault(
      "too_large",
      `${where} is too large: it has ${bytes} bytes or more, and maxValueBytes is ${max}; pass a reference to a file instead, or open the runtime with a higher maxValueBytes`,
      { details: { bytes, max } },
    );
  }
}
