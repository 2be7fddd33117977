import { describe, expect, test } from "vitest";
import { JsonSchemaCheck } from "../../../src/capabilities/index.ts";
import type { JsonSchema } from "../../../src/kernel/index.ts";

const problems = async (schema: JsonSchema, value: unknown): Promise<readonly string[]> =>
  new JsonSchemaCheck("the schema under test", schema).problems(value);
const text = (pattern: string): JsonSchema => ({ type: "string", pattern });

describe("JsonSchemaCheck", () => {
  test.each([
    ["^(a+)+$", "a"],
    ["^(a|a)*$", "a"],
    ["^(\\w+\\s?)*$", "a"],
    ["^(([a-z])+.)+[A-Z]([a-z])+$", "a"],
    ["(x+x+)+y", "x"],
    ["^(?:.*,){11}P$", ","],
  ])(
    "checks the pattern %s in linear time: 50,000 characters that do not match are refused",
    async (pattern, char) => {
      const value = `${char.repeat(50_000)}\u0000`;
      expect(await problems(text(pattern), value)).toEqual([`must match pattern "${pattern}"`]);
    },
  );

  test("checks names against patternProperties in linear time", async () => {
    const schema = { type: "object", patternProperties: { "^(a+)+$": true }, additionalProperties: false };
    expect(await problems(schema, { [`${"a".repeat(50_000)}!`]: 1 })).toEqual([
      "must NOT have additional properties",
    ]);
    expect(await problems(schema, { aaa: 1 })).toEqual([]);
  });

  test.each([
    ["a lookahead", "^(?=.*\\d)\\w+$"],
    ["a negative lookahead", "^(?!admin)\\w+$"],
    ["a lookbehind", "(?<=a)b"],
    ["a backreference", "^(a|b)\\1$"],
    ["a repetition above 1,000", "^.{1,4000}$"],
    ["a repetition whose expansion is too large", "((a{1,100}){1,100}){1,100}"],
    ["a negated class inside a class", "^[\\S,]+$"],
  ])("does not check a pattern with %s", async (_what, pattern) => {
    expect(await problems(text(pattern), "!")).toEqual([]);
    expect(await problems({ ...text(pattern), maxLength: 2 }, "!!!")).toEqual([
      "must NOT have more than 2 characters",
    ]);
  });

  test("accepts every property under an unsupported pattern of patternProperties and still checks the others", async () => {
    const schema = {
      type: "object",
      properties: { size: { type: "number" } },
      patternProperties: { "^(?=x)": { type: "number" }, "^y": { type: "number" } },
      additionalProperties: false,
    };
    expect(await problems(schema, { xa: "text", other: "text", y: 1, size: 2 })).toEqual([]);
    expect(await problems(schema, { y: "text" })).toEqual(["y must be number"]);
    expect(await problems(schema, { size: "text" })).toEqual(["size must be number"]);
  });

  test.each([
    ["\\s is Unicode white space", "^\\s+$", "\u00a0\u2003\ufeff\v", true],
    ["\\S is its opposite", "^\\S+$", "a\u00a0b", false],
    ["\\s inside a class is Unicode white space", "^[\\s,]+$", "\u00a0,", true],
    [". matches no line end", "^.+$", "a\u2028b", false],
    [". matches a character outside the BMP once", "^.$", "\u{1f600}", true],
    [". inside a class is a full stop", "^[.]$", "a", false],
    ["an escaped pair of surrogates is one character", "^[\\ud83d\\ude00]$", "\u{1f600}", true],
    ["\\u{...} is a code point", "^\\u{1f600}$", "\u{1f600}", true],
    ["$ matches at the end only", "^a$", "a\n", false],
    ["a named group is a group", "^(?<year>\\d{4})$", "2026", true],
    ["a property of Unicode", "^\\p{Lu}$", "\u00c4", true],
    ["an escaped slash", "^a\\/b$", "a/b", true],
    ["a pattern without anchors matches anywhere", "b", "abc", true],
  ])("gives a pattern the meaning that it has in JavaScript: %s", async (_what, pattern, value, isMatch) => {
    expect(new RegExp(pattern, "u").test(value)).toBe(isMatch);
    expect((await problems(text(pattern), value)).length).toBe(isMatch ? 0 : 1);
  });

  test("compiles a schema once for any number of values that arrive before it is compiled", async () => {
    const readsFor = async (count: number): Promise<number> => {
      let reads = 0;
      const schema = new Proxy<JsonSchema>(
        { type: "object" },
        { get: (target, key) => (key === "type" && reads++, Reflect.get(target, key)) },
      );
      const check = new JsonSchemaCheck("the schema under test", schema);
      await Promise.all(Array.from({ length: count }, async () => check.problems({})));
      return reads;
    };
    expect(await readsFor(1_000)).toBe(await readsFor(1));
  });

  test("keeps two patterns of one schema apart", async () => {
    const schema = { type: "object", properties: { a: text("^a$"), b: text("^b$") } };
    expect(await problems(schema, { a: "a", b: "b" })).toEqual([]);
    expect(await problems(schema, { a: "b", b: "a" })).toEqual([
      'a must match pattern "^a$"',
      'b must match pattern "^b$"',
    ]);
  });

  test.each(["(", "[z-a]", "\\A"])(
    "refuses the malformed pattern %s and names the schema",
    async (pattern) => {
      await expect(problems(text(pattern), "a")).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining("the schema under test is not a JSON Schema: ") as string,
      });
    },
  );
});
