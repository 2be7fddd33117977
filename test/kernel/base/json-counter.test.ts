import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { JsonCounter, maxJsonValues, valuesLeft, type JsonValue } from "../../../src/kernel/index.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Whether a text is accepted if it is added in pieces of this size. */
function passes(text: string, size = Infinity, maxDepth?: number): boolean {
  const counter = new JsonCounter("the text", maxDepth);
  const bytes = bytesOf(text);
  try {
    for (let at = 0; at < bytes.length; at += size) counter.add(bytes.subarray(at, at + size));
    return true;
  } catch {
    return false;
  }
}

/** Returns how many values a value contains, and how deep its objects and arrays are nested. */
function measured(value: JsonValue): { readonly values: number; readonly depth: number } {
  if (typeof value !== "object" || value === null) return { values: 1, depth: 0 };
  const members = Object.values(value).map((each) => measured(each));
  return {
    values: members.reduce((sum, { values }) => sum + values, 1),
    depth: Math.max(0, ...members.map(({ depth }) => depth)) + 1,
  };
}

describe("JsonCounter", () => {
  test("JsonCounter and valuesLeft() count what a parser finds, in pieces of any size", () => {
    fc.assert(
      fc.property(
        fc.jsonValue({ maxDepth: 5 }),
        fc.constantFrom(undefined, 1, "\t"),
        fc.integer({ min: 1, max: 9 }),
        (found, space, size) => {
          const value = found as JsonValue;
          const { values, depth } = measured(value);
          const text = JSON.stringify(value, null, space);
          // The rest of the values is a list of numbers after the value, so that the sum is the limit.
          const rest = maxJsonValues - values - 2;
          const list = `[${text},[${"0,".repeat(rest - 1)}0]]`;
          expect([passes(list, Infinity), passes(`[0,${list.slice(1)}`)]).toEqual([true, false]);
          expect([passes(text, size, depth), depth === 0 || passes(text, size, depth - 1)]).toEqual([
            true,
            depth === 0,
          ]);
          expect(valuesLeft(value, values)).toBe(0);
          expect(valuesLeft(value, values - 1)).toBe(-1);
        },
      ),
      { numRuns: 40 },
    );
  });

  test("JsonCounter ignores commas and brackets in texts, also behind escapes and in pieces", () => {
    const value = { 'a\\"[,': ["\\", '"', "{[,", '\\",'.repeat(60_000)] };
    for (const size of [1, 2, 3, Infinity]) expect(passes(JSON.stringify(value), size, 2)).toBe(true);
  });

  test("JsonCounter names the limit and what to do", () => {
    const many = bytesOf(`[${"0,".repeat(maxJsonValues)}0]`);
    expect(() => new JsonCounter("the body").add(many)).toThrow(
      "the body has more than 100000 JSON values; send fewer at once, or put the data into a file",
    );
    expect(() => new JsonCounter("the body", 2).add(bytesOf("[[[1]]]"))).toThrow(
      "the body is nested deeper than 2 levels; send a flatter value",
    );
  });

  test("valuesLeft() stops at a value that is nested deeper than 1,000 levels", () => {
    const nested = (levels: number): JsonValue =>
      JSON.parse("[".repeat(levels) + "]".repeat(levels)) as JsonValue;
    expect(valuesLeft(nested(1_000), maxJsonValues)).toBe(maxJsonValues - 1_000);
    expect(valuesLeft(nested(1_001), maxJsonValues)).toBe(-1);
    expect(valuesLeft(nested(50_000), maxJsonValues)).toBe(-1);
  });
});
