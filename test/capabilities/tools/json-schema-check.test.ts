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
    "JsonSchemaCheck checks 50,000 characters against the pattern %s in linear time and refuses them",
    async (pattern, char) => {
      const value = `${char.repeat(50_000)}\u0000`;
      expect(await problems(text(pattern), value)).toEqual([`must match pattern "${pattern}"`]);
    },
  );

  test("JsonSchemaCheck checks names against patternProperties in linear time", async () => {
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
  ])("JsonSchemaCheck does not check a pattern with %s", async (_what, pattern) => {
    expect(await problems(text(pattern), "!")).toEqual([]);
    expect(await problems({ ...text(pattern), maxLength: 2 }, "!!!")).toEqual([
      "must NOT have more than 2 characters",
    ]);
  });

  test("JsonSchemaCheck accepts every property under an unsupported pattern of patternProperties and checks other properties", async () => {
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
  ])(
    "JsonSchemaCheck gives a pattern the meaning that it has in JavaScript: %s",
    async (_what, pattern, value, isMatch) => {
      expect(new RegExp(pattern, "u").test(value)).toBe(isMatch);
      expect((await problems(text(pattern), value)).length).toBe(isMatch ? 0 : 1);
    },
  );

  test("JsonSchemaCheck compiles a schema once for any number of values that arrive before it is compiled", async () => {
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

  test("JsonSchemaCheck treats two patterns of one schema separately", async () => {
    const schema = { type: "object", properties: { a: text("^a$"), b: text("^b$") } };
    expect(await problems(schema, { a: "a", b: "b" })).toEqual([]);
    expect(await problems(schema, { a: "b", b: "a" })).toEqual([
      'a must match pattern "^a$"',
      'b must match pattern "^b$"',
    ]);
  });

  test.each(["(", "[z-a]", "\\A"])(
    "JsonSchemaCheck refuses the malformed pattern %s and names the schema",
    async (pattern) => {
      await expect(problems(text(pattern), "a")).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining("the schema under test is not a JSON Schema: ") as string,
      });
    },
  );

  /** A schema in which each of `depth` definitions refers twice to the next one. */
  const doubling = (keyword: "anyOf" | "allOf" | "oneOf", depth: number): JsonSchema => {
    const $defs: Record<string, JsonSchema> = { d0: { type: "string" } };
    for (let at = 1; at <= depth; at++) {
      const next = { $ref: `#/$defs/d${at - 1}` };
      $defs[`d${at}`] = { [keyword]: [next, next] };
    }
    return { $defs, $ref: `#/$defs/d${depth}` };
  };

  test.each(["anyOf", "allOf", "oneOf"] as const)(
    "JsonSchemaCheck fails in time when the references of a schema multiply in %s, on every call",
    async (keyword) => {
      const check = new JsonSchemaCheck("the schema under test", doubling(keyword, 40));
      const refused = {
        code: "invalid_argument",
        message: expect.stringContaining("the schema under test is too complex") as string,
      };
      for (let call = 0; call < 2; call++)
        await expect((async () => check.problems({}))()).rejects.toMatchObject(refused);
      expect(await problems(doubling(keyword, 3), {})).not.toEqual([]);
    },
  );

  test("JsonSchemaCheck fails in time when references multiply with the depth of the value", async () => {
    const branch = { type: "object", properties: { next: { $ref: "#/$defs/node" } }, required: ["end"] };
    const schema = { $defs: { node: { anyOf: [branch, branch] } }, $ref: "#/$defs/node" };
    let value: JsonSchema = {};
    for (let depth = 0; depth < 60; depth++) value = { next: value };
    await expect(problems(schema, value)).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("JsonSchemaCheck follows one reference for each of 200,000 items", async () => {
    const schema = {
      $defs: {
        item: { type: "object", properties: { inner: { $ref: "#/$defs/leaf" } } },
        leaf: { type: "number" },
      },
      type: "array",
      items: { $ref: "#/$defs/item" },
    };
    const items: unknown[] = Array.from({ length: 200_000 }, (_, inner) => ({ inner }));
    expect(await problems(schema, items)).toEqual([]);
    expect(await problems(schema, [...items, { inner: "x" }])).toEqual(["200000.inner must be number"]);
  });

  test("JsonSchemaCheck checks uniqueItems in linear time: 100,000 objects are compared", async () => {
    const schema = { type: "array", uniqueItems: true };
    const items: unknown[] = Array.from({ length: 100_000 }, (_, at) => ({ same: 1, inner: { at } }));
    expect(await problems(schema, items)).toEqual([]);
    expect(await problems(schema, [...items, { inner: { at: 7 }, same: 1 }])).toEqual([
      "must NOT have duplicate items",
    ]);
    expect(await problems({ type: "array", uniqueItems: false }, [1, 1])).toEqual([]);
    expect(await problems(schema, [1, "1", true, null, [1]])).toEqual([]);
  });
});
