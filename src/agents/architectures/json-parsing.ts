import { jsonText, type JsonObject, type JsonValue } from "../../kernel/index.ts";
import { blocksIn, tryParseJson, unfenced, withoutThinking } from "../base/json-in-text.ts";
import { jsonSpansIn } from "../base/json-spans.ts";

/**
 * Yields the JSON values of a model's reply, the most likely one first: the whole reply, then code blocks, then
 * lists and objects inside the text. Longer values come before shorter ones, and of equally long ones the later one
 * comes first. The caller takes the first value with the shape that it needs, because notes and links beside the
 * answer may be valid JSON too.
 */
export function* jsonValuesIn(text: string): Iterable<JsonValue> {
  const reply = withoutThinking(text);
  const whole = tryParseJson(unfenced(reply));
  if (whole !== undefined) return yield whole;
  for (const block of blocksIn(reply)) {
    const value = tryParseJson(block);
    if (value !== undefined) yield value;
  }
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

/** A score from 0 to 1, or `unknown_scale` for a number above 1 without a scale, such as the 3 of "3 of 10". */
export type ParsedScore = number | "unknown_scale";

/**
 * Parses a score. Reads the member `score` of a JSON reply, the first number after the word "score", or a reply that is
 * only a number. Understands `40%`, `4/10`, `4 of 10`, `4 out of 10` and a JSON reply with the scale in `outOf`, `max`
 * or `scale`. A negative number counts as 0. `undefined` means that there is no score.
 */
export function parseScore(text: string): ParsedScore | undefined {
  for (const value of jsonValuesIn(text)) {
    if (typeof value === "number") return parseFraction(String(value));
    if (!isJsonObject(value) || !Object.hasOwn(value, "score")) continue;
    const scale = scaleMembers.map((name) => value[name]).find((each) => typeof each === "number");
    const written = jsonText(value["score"] ?? null);
    return parseFraction(scale !== undefined && isPlainNumber(written) ? `${written}/${scale}` : written);
  }
  const reply = withoutThinking(text);
  const written = /score\D{0,12}?(-?\.?\d[^\n]{0,20})/iu.exec(reply)?.[1];
  return parseFraction(written ?? (/^[-.\d\s%/]+$/u.test(reply) ? reply : ""));
}

const scaleMembers = ["outOf", "out_of", "max", "scale"];

function isPlainNumber(text: string): boolean {
  return /^-?\d+(?:\.\d+)?$/u.test(text.trim());
}

/** Parses the number at the start of a text as a fraction of 1. */
export function parseFraction(text: string): ParsedScore | undefined {
  const read = /^\s*(-?(?:\d+(?:\.\d+)?|\.\d+))\s*(?:(%)|(?:\/|out of|of)\s*(\d+(?:\.\d+)?))?/iu.exec(text);
  if (read === null) return undefined;
  const [, number, percent, whole = "1"] = read;
  const share = Number(number) / (percent === undefined ? Number(whole) || 1 : 100);
  return share > 1 ? "unknown_scale" : Math.max(0, share);
}

/**
 * A reply together with its score. A reply without a readable score has the score 0, so that it never counts as an
 * approval.
 */
export interface ScoredReply {
  readonly reply: string;
  readonly score: number;
}

/**
 * Asks for a score, and a second time if the scale of the score is unknown. `correction` is empty for the first
 * question, and says for the second what was wrong.
 */
export async function askForScore(ask: (correction: string) => Promise<string>): Promise<ScoredReply> {
  const first = await ask("");
  const score = parseScore(first);
  if (score !== "unknown_scale") return { reply: first, score: score ?? 0 };
  const said = JSON.stringify(first.length > 500 ? `${first.slice(0, 500)}...` : first);
  const reply = await ask(
    `You replied ${said}. Its score is above 1, and its scale is unknown. Reply again in the same form with a score from 0 to 1.`,
  );
  const corrected = parseScore(reply);
  return { reply, score: typeof corrected === "number" ? corrected : 0 };
}
