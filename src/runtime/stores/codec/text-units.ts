import { contentThreshold } from "../../../kernel/index.ts";

/** Number of characters that stands for a number, a boolean or `null`. */
const unitsOfScalar = 5;

/**
 * Whether the JSON text of a value has at least `contentThreshold` characters. It is counted without escapes, so that
 * the cost is O(members), not O(characters).
 */
export function isLarge(value: unknown): boolean {
  return unitsLeft(value, contentThreshold) <= 0;
}

/** Subtracts the characters of the value's JSON text from `left`. Stops as soon as nothing is left. */
function unitsLeft(value: unknown, left: number): number {
  if (typeof value === "string") return left - value.length - 2;
  if (typeof value !== "object" || value === null) return value === undefined ? left : left - unitsOfScalar;
  let rest = left - 2;
  if (Array.isArray(value)) {
    const items = value as readonly unknown[];
    for (let index = 0; index < items.length && rest > 0; index++) rest = unitsLeft(items[index], rest - 1);
    return rest;
  }
  const members = value as Readonly<Record<string, unknown>>;
  for (const key in members) {
    if (rest <= 0) return rest;
    rest = unitsLeft(members[key], rest - key.length - 4);
  }
  return rest;
}
