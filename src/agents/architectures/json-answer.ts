import type { JsonValue } from "../../kernel/index.ts";
import { fencedIn, unfenced } from "../answer-format.ts";

/** The JSON a model wrote: alone, in a code block, or somewhere among its words. `undefined`: none. */
export function jsonIn(text: string): JsonValue | undefined {
  const whole = parsed(unfenced(text));
  if (whole !== undefined) return whole;
  const block = fencedIn(text);
  const inBlock = block === undefined ? undefined : parsed(block);
  if (inBlock !== undefined) return inBlock;
  for (const [open, close] of [
    ["{", "}"],
    ["[", "]"],
  ] as const) {
    const from = text.indexOf(open);
    const to = text.lastIndexOf(close);
    const found = from >= 0 && to > from ? parsed(text.slice(from, to + 1)) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * A score from 0 to 1, clamped: the member `score` of a JSON answer, or the first number after the word, or a number alone. `40%`, `4/10`
 * and `4 out of 10` are understood. `undefined`: none.
 */
export function scoreIn(text: string): number | undefined {
  const value = jsonIn(text);
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  if (typeof value === "number") return shareIn(String(value));
  if (isObject && Object.hasOwn(value, "score")) return shareIn(String(Reflect.get(value, "score")));
  const written = /score\D{0,12}?(-?\.?\d[^\n]{0,20})/iu.exec(text)?.[1];
  return shareIn(written ?? (/^[-.\d\s%/]+$/u.test(text) ? text : ""));
}

/** What a text begins with, as a share of 1. */
export function shareIn(text: string): number | undefined {
  const read = /^\s*(-?(?:\d+(?:\.\d+)?|\.\d+))\s*(?:(%)|(?:\/|out of)\s*(\d+))?/iu.exec(text);
  if (read === null) return undefined;
  const [, number, percent, whole = "1"] = read;
  const share = Number(number) / (percent === undefined ? Number(whole) || 1 : 100);
  return Math.min(1, Math.max(0, share));
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
