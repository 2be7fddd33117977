import { jsonText, type JsonObject, type JsonValue } from "../../kernel/index.ts";
import { fencedIn, unfenced } from "../answer-format.ts";
import { jsonSpansIn } from "./json-spans.ts";

/**
 * Yields the JSON values of a model's reply, the most likely one first: the whole reply, then a code block, then lists
 * and objects inside the text, the longest first and the later of two equally long ones first. The caller takes the
 * first value with the shape it needs, because notes and links beside the answer may be valid JSON too.
 */
export function* jsonValuesIn(text: string): Iterable<JsonValue> {
  const reply = withoutThinking(text);
  const whole = tryParseJson(unfenced(reply));
  if (whole !== undefined) return yield whole;
  const block = fencedIn(reply);
  const inBlock = block === undefined ? undefined : tryParseJson(block);
  if (inBlock !== undefined) yield inBlock;
  const spans = [...jsonSpansIn(reply)].toReversed();
  for (const span of spans.toSorted((one, other) => other.length - one.length)) {
    const value = tryParseJson(span);
    if (value !== undefined) yield value;
  }
}

/** Returns the first object in a model's reply that has one of these members. */
export function findObjectWith(text: string, names: readonly string[]): JsonObject | undefined {
  for (const value of jsonValuesIn(text))
    if (isJsonObject(value) && names.some((name) => Object.hasOwn(value, name))) return value;
  return undefined;
}

/** Whether a JSON value is an object and not a list. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const thinkingEnd = "</think>";

/** Removes the model's thinking up to `</think>`, which some servers leave in the reply. */
export function withoutThinking(text: string): string {
  const end = text.lastIndexOf(thinkingEnd);
  const rest = end < 0 ? "" : text.slice(end + thinkingEnd.length);
  return rest.trim() === "" ? text : rest;
}

/**
 * Parses a score and clamps it to 0 to 1. Reads the member `score` of a JSON reply, the first number after the word
 * "score", or a reply that is only a number. Understands `40%`, `4/10` and `4 out of 10`. `undefined` means that there
 * is no score.
 */
export function parseScore(text: string): number | undefined {
  for (const value of jsonValuesIn(text)) {
    if (typeof value === "number") return parseFraction(String(value));
    const { score } = isJsonObject(value) && Object.hasOwn(value, "score") ? value : {};
    if (score !== undefined) return parseFraction(jsonText(score));
  }
  const reply = withoutThinking(text);
  const written = /score\D{0,12}?(-?\.?\d[^\n]{0,20})/iu.exec(reply)?.[1];
  return parseFraction(written ?? (/^[-.\d\s%/]+$/u.test(reply) ? reply : ""));
}

/** Parses the number at the start of a text as a fraction of 1. */
export function parseFraction(text: string): number | undefined {
  const read = /^\s*(-?(?:\d+(?:\.\d+)?|\.\d+))\s*(?:(%)|(?:\/|out of)\s*(\d+))?/iu.exec(text);
  if (read === null) return undefined;
  const [, number, percent, whole = "1"] = read;
  const share = Number(number) / (percent === undefined ? Number(whole) || 1 : 100);
  return Math.min(1, Math.max(0, share));
}

/** Parses JSON. `undefined` means that the text is not JSON. */
export function tryParseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
