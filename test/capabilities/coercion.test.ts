import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Agent } from "../../src/assembly/agent.ts";
import { tool } from "../../src/capabilities/index.ts";
import type { JsonSchema, JsonValue } from "../../src/kernel/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

function coerced(schema: JsonSchema, input: JsonValue): JsonValue {
  const made = tool({ name: "t", description: "x", inputSchema: schema, execute: () => "" });
  return made.coerce?.(input) ?? null;
}

function member(schema: JsonSchema, value: JsonValue): JsonValue {
  const object = coerced({ type: "object", properties: { value: schema } }, { value });
  return (object as { value: JsonValue }).value;
}

describe("T3: tool() coerces arguments only if nothing is lost", () => {
  test.for<[JsonSchema, JsonValue, JsonValue]>([
    [{ type: "number" }, "8", 8],
    [{ type: "number" }, "-0.25", -0.25],
    [{ type: "number" }, "8.50", 8.5],
    [{ type: "integer" }, "8", 8],
    [{ type: "integer" }, "8.0", 8],
    [{ type: "boolean" }, "true", true],
    [{ type: "boolean" }, "false", false],
    [{ type: "null" }, "null", null],
    [{ type: "object" }, '{"a":[1]}', { a: [1] }],
    [{ type: "array", items: { type: "number" } }, '["1", 2]', [1, 2]],
    [{ type: "array", items: { type: "integer" } }, ["1", 2], [1, 2]],
    [{ type: ["number", "null"] }, "8", 8],
    [{ anyOf: [{ type: "number" }, { type: "null" }] }, "8", 8],
    [{ oneOf: [{ type: "boolean" }, { type: "object" }] }, "true", true],
    [{ allOf: [{ type: "integer" }, { minimum: 1 }] }, "3", 3],
    [{ type: "object", additionalProperties: { type: "number" } }, { a: "1" }, { a: 1 }],
    [{ type: "array", prefixItems: [{ type: "boolean" }] }, ["true", "true"], [true, "true"]],
  ])("tool() with the schema %j converts the argument %j to %j", ([schema, value, expected]) => {
    expect(member(schema, value)).toEqual(expected);
  });

  test.for<[JsonSchema, JsonValue]>([
    [{ type: "string" }, 8], // 1.10 would become "1.1"
    [{ type: "string" }, true],
    [{ type: "number" }, ""],
    [{ type: "number" }, " 8"],
    [{ type: "number" }, "0x10"],
    [{ type: "number" }, "007"],
    [{ type: "number" }, "-0"],
    [{ type: "number" }, "NaN"],
    [{ type: "number" }, "Infinity"],
    [{ type: "number" }, "9007199254740993"],
    [{ type: "number" }, "0.1000000000000000055511151231257827"],
    [{ type: "number" }, true],
    [{ type: "integer" }, "8.5"],
    [{ type: "integer" }, 8.5],
    [{ type: "boolean" }, "True"],
    [{ type: "boolean" }, "1"],
    [{ type: "boolean" }, 1],
    [{ type: "array" }, "a,b"],
    [{ type: "array" }, '{"a":1}'],
    [{ type: "object" }, "[1]"],
    [{ type: "object" }, '{"a":9007199254740993}'],
    [{ type: "object" }, '{"__proto__":{"x":1}}'],
    [{ type: ["string", "number"] }, "8"],
    [{ anyOf: [{ type: "string" }, { type: "number" }] }, "8"],
    [{}, "8"],
  ])("tool() with the schema %j leaves the argument %j unchanged", ([schema, value]) => {
    expect(member(schema, value)).toBe(value);
  });

  test.for<"anyOf" | "oneOf">(["anyOf", "oneOf"])(
    "%s: the constants of an object's properties say which variant of the schema it is",
    (choice) => {
      const variant = (kind: string, size: JsonSchema): JsonSchema => ({
        type: "object",
        properties: { kind: { const: kind }, size },
        required: ["kind"],
      });
      const either = { [choice]: [variant("a", { type: "number" }), variant("b", { type: "string" })] };
      expect(member(either, { kind: "a", size: null })).toEqual({ kind: "a" });
      expect(member(either, { kind: "a", size: "8" })).toEqual({ kind: "a", size: 8 });
      expect(member(either, { kind: "b", size: "8" })).toEqual({ kind: "b", size: "8" });
      expect(member(either, { size: null })).toEqual({ size: null });
    },
  );

  test.for<[JsonSchema, string]>([
    [{ type: "string" }, "a type"],
    [{ type: ["string", "number"] }, "several types"],
    [{ enum: ["a", "b"] }, "a list of values"],
    [{ const: 1 }, "one value"],
    [{ anyOf: [{ type: "string" }, { type: "number" }] }, "alternatives"],
    [{ oneOf: [{ enum: [1] }, { type: "array" }] }, "exclusive alternatives"],
    [{ allOf: [{ minimum: 1 }, { type: "integer" }] }, "several conditions"],
    [{ $ref: "#/$defs/name" }, "a reference"],
  ])("tool() leaves out null for an optional property with the schema %j", ([value]) => {
    const $defs = { name: { type: "string" } };
    const optional = { type: "object", properties: { value, other: { type: "number" } }, $defs };
    expect(coerced(optional, { value: null, other: "1" })).toEqual({ other: 1 });
    const nested = { type: "object", properties: { list: { type: "array", items: optional } }, $defs };
    expect(coerced(nested, { list: [{ value: null }] })).toEqual({ list: [{}] });
    const required = { ...optional, required: ["value"] };
    expect(coerced(required, { value: null, other: 1 })).toEqual({ value: null, other: 1 });
  });

  test.for<[JsonSchema]>([
    [{}],
    [{ type: ["string", "null"] }],
    [{ enum: ["a", null] }],
    [{ const: null }],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }],
    [{ oneOf: [{ type: "string" }, {}] }],
    [{ $ref: "#/$defs/missing" }],
  ])(
    "tool() keeps null for an optional property with the schema %j, because null may be accepted",
    ([value]) => {
      const input = { value: null };
      expect(coerced({ type: "object", properties: { value } }, input)).toBe(input);
    },
  );

  test("tool() keeps null for a property that the schema does not name", () => {
    const input = { other: null };
    expect(coerced({ type: "object", additionalProperties: { type: "string" } }, input)).toBe(input);
  });

  test("a tool call with null for an optional argument is executed with its default and costs no further turn", async () => {
    const seen: unknown[] = [];
    const search = tool({
      name: "search",
      description: "x",
      inputSchema: z.object({
        query: z.string(),
        limit: z.number().optional(),
        order: z.enum(["new", "old"]).default("new"),
        note: z.string().nullable().optional(),
      }),
      execute: (input) => (seen.push(input), "found"),
    });
    const input = { query: "fig", limit: null, order: null, note: null };
    const model = scriptedModel([{ toolCalls: [{ name: "search", input }] }, "Done."]);
    const { turns } = await new Agent({ name: "scout", model, tools: [search] }).invoke("Go.");
    expect(seen).toEqual([{ query: "fig", order: "new", note: null }]);
    expect(turns).toBe(2);
  });

  test("tool arguments that arrive as one JSON text are parsed, and references in the schema are followed", () => {
    const schema = {
      type: "object",
      properties: { node: { $ref: "#/$defs/node" } },
      $defs: {
        node: {
          type: "object",
          properties: { size: { type: "number" }, next: { $ref: "#/$defs/node" } },
        },
      },
    };
    expect(coerced(schema, '{"node":{"size":"1","next":"{\\"size\\":\\"2\\"}"}}')).toEqual({
      node: { size: 1, next: { size: 2 } },
    });
  });

  test("tool arguments that match the schema are returned as the same value", () => {
    const schema = { type: "object", properties: { any: {}, text: { type: "string" } } };
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), (any, text) => {
        const input = { any, text } as JsonValue;
        expect(coerced(schema, input)).toBe(input);
      }),
    );
  });

  test("tool() coerces a text to a number only if the number is written back as the same text", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const value = member({ type: "number" }, text);
        expect(typeof value === "number" ? Number(text) : text).toBe(value);
      }),
    );
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        const plain = Object.is(number, -0) ? 0 : number;
        expect(member({ type: "number" }, String(plain))).toBe(plain);
      }),
    );
  });

  test("tool() coerces a zod schema like a JSON Schema, and the error names only the arguments that are still invalid", async () => {
    const add = tool({
      name: "add",
      description: "x",
      inputSchema: z.object({ a: z.number(), b: z.boolean(), c: z.array(z.number()) }),
      execute: () => "",
    });
    expect(await add.parse({ a: "8", b: "true", c: "[1]" })).toEqual({ a: 8, b: true, c: [1] });
    const refused = Promise.resolve(add.parse({ a: "8", b: "maybe", c: [] }));
    await expect(refused).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(/^the arguments of add do not match its schema: b (?!.*\ba\b ).*again$/),
    });
  });
});
