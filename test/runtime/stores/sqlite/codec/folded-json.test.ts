import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { JsonObject, JsonValue } from "../../../../../src/kernel/index.ts";
import { foldJson, unfoldJson } from "../../../../../src/runtime/stores/sqlite/codec/folded-json.ts";

const json = fc.jsonValue() as fc.Arbitrary<JsonValue>;
const long = "a text that is long enough";

/** Folded, through the file, and back. */
function through(value: JsonObject, known: readonly JsonValue[]): JsonValue {
  return unfoldJson(JSON.parse(JSON.stringify(foldJson(value, known))) as JsonValue, known);
}

test("folding leaves nothing twice, and unfolding gives back what was folded", () => {
  const twice = { one: long, other: { a: 1, b: [2, 3] } };
  const folded = foldJson({ first: twice, again: [twice, twice.one, twice.other] }, []);
  expect(JSON.stringify(folded).split("long enough").length - 1).toBe(1);
  fc.assert(
    fc.property(json, json, (value, other) => {
      const whole = { value, other, again: [value, { value, other }] };
      expect(JSON.stringify(through(whole, [long, value]))).toBe(JSON.stringify(whole));
    }),
    { numRuns: 500 },
  );
});

test("equal known values count once in every counter: texts, objects, and those inside others", () => {
  const part = fc.constantFrom<JsonValue>(
    long,
    "another text that is long",
    "short",
    { a: 1, b: 2 },
    { b: 2, a: 1 },
    { long, n: null },
    { long, deep: { long, n: null } },
    [long, long],
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 6 }), fc.array(part, { maxLength: 8 }), (known, parts) => {
      const whole = { parts, again: parts.map((each) => [each, { each, long }]) };
      expect(JSON.stringify(through(whole, known))).toBe(JSON.stringify(whole));
    }),
    { numRuns: 1_000 },
  );
});

test("what holds our marks comes back as it was", () => {
  for (const odd of [{ $same: 0 }, { plain: 1 }, { plain: { $same: 1 }, more: long }])
    expect(through(odd, [])).toEqual(odd);
});

test("what is very large is not folded, be it long or wide or both", () => {
  const rows = Array.from({ length: 3_000 }, (_, index) => ({ long, index }));
  const wide = Object.fromEntries(rows.map((row, index) => [`member ${index}`, row]));
  for (const large of [{ rows }, { wide }, { lists: [rows, rows] }]) {
    expect(foldJson(large, [])).toEqual({ plain: large });
    expect(through(large, [])).toEqual(large);
  }
  expect(JSON.stringify(foldJson({ rows: rows.slice(0, 1_000) }, [])).split(long).length - 1).toBe(1);
});
