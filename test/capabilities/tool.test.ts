import { describe, expect, test } from "vitest";
import { z } from "zod";
import { tool } from "../../src/capabilities/index.ts";
import type { ToolContext } from "../../src/kernel/index.ts";

const context = {} as ToolContext;

describe("tool()", () => {
  test("tells the model the JSON Schema of a zod schema and hands the parsed input to the body", async () => {
    const add = tool({
      name: "add",
      description: "Adds",
      input: z.object({ a: z.number(), b: z.number().default(1) }),
      execute: ({ a, b }) => a + b,
    });
    expect(add.inputSchema).toMatchObject({
      type: "object",
      required: ["a"],
      properties: { a: { type: "number" } },
    });
    const input = await add.parse({ a: 2 });
    expect(input).toEqual({ a: 2, b: 1 });
    expect(await add.execute(input, context)).toEqual({ output: { type: "json", value: 3 }, isError: false });
  });

  test("T1: input that does not fit is refused with what to mend, from zod and from JSON Schema alike", async () => {
    const body = { description: "x", execute: () => "" };
    const zod = tool({ ...body, name: "zod", input: z.object({ where: z.object({ town: z.string() }) }) });
    const json = tool({
      ...body,
      name: "json",
      input: {
        type: "object",
        properties: { where: { type: "object", properties: { town: { type: "string" } } } },
      },
    });
    for (const each of [zod, json]) {
      const refused = Promise.resolve(each.parse({ where: { town: 1 } }));
      await expect(refused).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining("where.town"),
      });
    }
  });

  test("a schema that is no JSON Schema is refused by name at its first use", async () => {
    const bad = tool({ name: "bad", description: "x", input: { type: "nonsense" }, execute: () => "" });
    await expect(Promise.resolve(bad.parse({}))).rejects.toMatchObject({
      code: "invalid_argument",
      message: "the input schema of tool bad is not a JSON Schema",
    });
  });

  test("results are shaped: a text, JSON, nothing, or a whole result", async () => {
    const returning = (value: unknown) =>
      tool({
        name: "give",
        description: "x",
        input: { type: "object" },
        execute: () => value as string,
      }).execute({}, context);
    expect(await returning("hi")).toEqual({ output: { type: "text", text: "hi" }, isError: false });
    expect(await returning(undefined)).toEqual({ output: { type: "text", text: "" }, isError: false });
    expect(await returning([1])).toEqual({ output: { type: "json", value: [1] }, isError: false });
    const whole = { output: { type: "text", text: "no" }, isError: true, terminate: true };
    expect(await returning(whole)).toEqual(whole);
  });

  test("fails closed: a risky tool counts as destructive unless told", () => {
    const make = (options: { risk?: "high"; destructive?: boolean }) =>
      tool({ name: "t", description: "x", input: { type: "object" }, execute: () => "", ...options });
    expect([make({}).destructive, make({ risk: "high" }).destructive]).toEqual([false, true]);
    expect(make({ risk: "high", destructive: false }).destructive).toBe(false);
  });

  test("a bad name is refused with the rule", () => {
    expect(() =>
      tool({ name: "look up", description: "x", input: { type: "object" }, execute: () => "" }),
    ).toThrow('"look up" is not a tool name');
  });
});
