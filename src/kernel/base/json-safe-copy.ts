import { describeValue } from "./describe-value.ts";
import type { JsonValue } from "./json-value.ts";

/** Values nested deeper than this are described in words instead of copied. */
const deepest = 32;

/**
 * Converts any value to the closest JSON: dates and bigints become strings, errors become name and message, class
 * instances become their properties. Cycles, unreadable values and values nested too deep are described in words. JSON
 * is returned unchanged. Never throws.
 */
export function nearestJson(value: unknown): JsonValue {
  return nearest(value, []) ?? null;
}

function nearest(value: unknown, around: readonly object[]): JsonValue | undefined {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      // -0 is the only finite number that changes in a round trip through JSON; adding 0 makes it 0.
      return Number.isFinite(value) ? value + 0 : String(value);
    case "undefined":
      return undefined;
    case "object":
      return value === null ? null : readable(value, around);
    default:
      return describeValue(value);
  }
}

function readable(value: object, around: readonly object[]): JsonValue {
  if (around.includes(value)) return "[contains itself]";
  if (around.length >= deepest) return `[${describeValue(value)}]`;
  try {
    return container(value, [...around, value]);
  } catch {
    return "[cannot be read]";
  }
}

function container(value: object, around: readonly object[]): JsonValue {
  if (Array.isArray(value))
    return Array.from(value as readonly unknown[], (each) => nearest(each, around) ?? null);
  if (value instanceof Error) return { name: value.name, message: value.message };
  if ("toJSON" in value && typeof value.toJSON === "function")
    return nearest((value.toJSON as () => unknown)(), around) ?? null;
  const members = Object.entries(value).flatMap(([key, member]) => {
    const near = nearest(member, around);
    return near === undefined ? [] : [[key, near] as const];
  });
  return Object.fromEntries(members);
}
