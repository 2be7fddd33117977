import { Fault, type AssistantPart, type JsonValue, type LlmReply } from "../../kernel/index.ts";

/** Maximum number of bytes that JSON writes for one UTF-16 code unit: `\u001f`. */
const bytesPerUnit = 6;
/** Number of units that bound the members of a reply besides the parts of its message. */
const unitsOfReply = 200;
/** Number of units that bound the members of a part besides its text. */
const unitsOfPart = 16;
/** Number of units that bound the JSON text of a number, a boolean or `null`. */
const unitsOfScalar = 5;

/**
 * Limits the size of single values that enter a run: inputs, results of steps and tools, messages and signals. Without it, one value could
 * use up the memory of the process. The size of a value is the number of bytes of its JSON text in UTF-8.
 */
export class SizeLimit {
  readonly #maxBytes: number;
  /** A value with at most this many units fits, whatever its characters are. */
  readonly #safeUnits: number;

  constructor(maxBytes = 16 * 1024 * 1024) {
    this.#maxBytes = maxBytes;
    this.#safeUnits = Math.floor(maxBytes / bytesPerUnit);
  }

  /** Throws `too_large` if the value exceeds the limit. `where` names the value. Most values cost O(members), not O(characters). */
  assert(value: JsonValue, where: string): void {
    if (unitsLeft(value, this.#safeUnits) >= 0) return;
    const bytes = this.#measure(value);
    if (bytes > this.#maxBytes) throw this.tooLarge(where, bytes);
  }

  /** Like `assert`. Reads only the parts of the message that can be long, because every turn passes here. */
  assertReply(reply: LlmReply, where: string): void {
    const { message, model } = reply;
    let left = this.#safeUnits - unitsOfReply - model.provider.length - model.modelId.length;
    for (const part of message.content) left = unitsLeftAfter(part, left);
    if (left < 0 || message.providerMetadata !== undefined) this.assert(reply as unknown as JsonValue, where);
  }

  /** Throws `too_large` if a text that is still being received is longer than any text that fits. */
  assertLength(units: number, where: string): void {
    if (units > this.#maxBytes) throw this.tooLarge(where, units);
  }

  private tooLarge(where: string, bytes: number): Fault {
    const max = this.#maxBytes;
    return new Fault(
      "too_large",
      `${where} is too large: it has ${bytes} bytes or more, and maxValueBytes is ${max}; pass a reference to a file instead, or open the runtime with a higher maxValueBytes`,
      { details: { bytes, max } },
    );
  }

  /** The exact size, or a lower bound of it that exceeds the limit. A text takes at least one byte per unit, so a huge one is not serialised. */
  #measure(value: JsonValue): number {
    const units = leastUnits(value, this.#maxBytes);
    return units > this.#maxBytes ? units : Buffer.byteLength(JSON.stringify(value));
  }
}

function unitsLeftAfter(part: AssistantPart, left: number): number {
  const isPlain = part.providerMetadata === undefined;
  if (isPlain && (part.type === "text" || part.type === "reasoning"))
    return left - part.text.length - unitsOfPart;
  if (isPlain && part.type === "tool_call")
    return unitsLeft(part.input, left - part.callId.length - part.toolName.length - unitsOfPart);
  return left < 0 ? left : unitsLeft(part as unknown as JsonValue, left);
}

/** Subtracts an upper bound of the units of the value's JSON text from `left`. Stops as soon as the result is negative. */
function unitsLeft(value: JsonValue | undefined, left: number): number {
  if (typeof value === "string") return left - value.length - 2;
  if (typeof value !== "object" || value === null) return left - unitsOfScalar;
  let rest = left - 2;
  if (Array.isArray(value)) {
    const items = value as readonly JsonValue[];
    for (let index = 0; index < items.length && rest >= 0; index++) rest = unitsLeft(items[index], rest - 1);
    return rest;
  }
  const record = value as Readonly<Record<string, JsonValue>>;
  for (const key in record) {
    if (rest < 0) return rest;
    rest = unitsLeft(record[key], rest - key.length - 4);
  }
  return rest;
}

/** A lower bound of the bytes of the value's JSON text. Stops as soon as it exceeds `max`. */
function leastUnits(value: JsonValue | undefined, max: number): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 1;
  let units = 2;
  for (const [key, member] of Object.entries(value) as readonly [string, JsonValue | undefined][]) {
    if (units > max) return units;
    units += leastUnits(member, max - units) + (Array.isArray(value) ? 0 : key.length + 3);
  }
  return units;
}
