import { jsonText, type JsonObject, type JsonValue } from "../../kernel/index.ts";
import { fencedIn, unfenced } from "../answer-format.ts";
import { jsonSpansIn } from "./json-spans.ts";

/**
 * The JSON a model wrote, likeliest first: all that it said, a code block, or what stands among its words, the longest before the rest, of
 * two the later.
 * Whoever asks takes the first that is what it looks for: a note or a link beside an answer may be JSON, too.
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

/** The first object a model wrote that has one of these members. */
export function findObjectWith(text: string, names: readonly string[]): JsonObject | undefined {
  for (const value of jsonValuesIn(text))
    if (isJsonObject(value) && names.some((name) => Object.hasOwn(value, name))) return value;
  return undefined;
}

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const thinkingEnd = "</think>";

/** Some servers leave what a model thought in its answer. */
export function withoutThinking(text: string): string {
  const end = text.lastIndexOf(thinkingEnd);
  const rest = end < 0 ? "" : text.slice(end + thinkingEnd.length);
  return rest.trim() === "" ? text : rest;
}

/**
 * A score from 0 to 1, clamped: the member `score` of a JSON answer, or the first number after the word, or a number alone. `40%`, `4/10`
 * and `4 out of 10` are understood. `undefined`: none.
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

/** What a text begins with, as a share of 1. */
export function parseFraction(text: string): number | undefined {
  const read = /^\s*(-?(?:\d+(?:\.\d+)?|\.\d+))\s*(?:(%)|(?:\/|out of)\s*(\d+))?/iu.exec(text);
  if (read === null) return undefined;
  const [, number, percent, whole = "1"] = read;
  const share = Number(number) / (percent === undefined ? Number(whole) || 1 : 100);
  return Math.min(1, Math.max(0, share));
}

/** `undefined`: it is no JSON. */
export function tryParseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
