import type { JsonValue } from "../../kernel/index.ts";
import { unfenced } from "../answer-format.ts";

/** The JSON a model wrote: alone, in a code block, or somewhere among its words. `undefined`: none. */
export function jsonIn(text: string): JsonValue | undefined {
  const whole = parsed(unfenced(text.trim()));
  if (whole !== undefined) return whole;
  const block = /```(?:json)?\s*\n([\s\S]*?)\n?\s*```/u.exec(text)?.[1];
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

/** A score from 0 to 1, clamped: the member `score` of a JSON answer, or the first number after the word. `undefined`: none. */
export function scoreIn(text: string): number | undefined {
  const value = jsonIn(text);
  const named =
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Reflect.get(value, "score")
      : value;
  const written =
    /score\D{0,12}?(-?\d+(?:\.\d+)?)/iu.exec(text)?.[1] ?? /^\s*(-?\d+(?:\.\d+)?)\s*$/u.exec(text)?.[1];
  const score = typeof named === "number" ? named : Number(written ?? Number.NaN);
  return Number.isFinite(score) ? Math.min(1, Math.max(0, score)) : undefined;
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
