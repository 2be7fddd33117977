import { describe, expect, test } from "vitest";
import { z } from "zod";
import { errorResult, fileResult, imageResult, textResult, tool } from "../../src/capabilities/index.ts";
import type { JsonValue, ToolContext } from "../../src/kernel/index.ts";

const context = {} as ToolContext;

describe("tool()", () => {
  test("tool() describes a zod schema as JSON Schema and passes the parsed input to the body", async () => {
    const add = tool({
      name: "add",
      description: "Adds",
      inputSchema: z.object({ a: z.number(), b: z.number().default(1) }),
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

  test("tool() creates tools that can be spread to change a field", async () => {
    const look = tool({
      name: "look",
      description: "Looks",
      inputSchema: { type: "object", properties: { at: { type: "integer" } }, required: ["at"] } as const,
      needsApproval: ({ at }) => at > 1,
      execute: ({ at }) => `seen ${at}`,
    });
    const careful = { ...look, name: "look_twice", risk: "high" as const };
    const input = await careful.parse({ at: 2 });
    expect(careful.coerce?.({ at: "2" })).toEqual({ at: 2 });
    expect(await careful.needsApproval(input)).toBe(true);
    expect(await careful.execute(input, context)).toEqual(textResult("seen 2"));
    await expect(Promise.resolve(careful.parse({}))).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("T1: tool() refuses invalid input and says what to fix, for zod and JSON Schema alike", async () => {
    const body = { description: "x", execute: () => "" };
    const zod = tool({
      ...body,
      name: "zod",
      inputSchema: z.object({ where: z.object({ town: z.string() }) }),
    });
    const json = tool({
      ...body,
      name: "json",
      inputSchema: {
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

  test("tool() names the tool if its JSON Schema is malformed, at the first use", async () => {
    const bad = tool({ name: "bad", description: "x", inputSchema: { type: "nonsense" }, execute: () => "" });
    await expect(Promise.resolve(bad.parse({}))).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(
        /^the input schema of tool bad is not a JSON Schema: schema is invalid: data\/type must be/u,
      ),
    });
  });

  test.each([
    ["pattern", { type: "object", properties: { code: { type: "string", pattern: "[" } } }, "["],
    ["pattern in a list", { anyOf: [{ type: "string" }, { type: "array", items: { pattern: "(" } }] }, "("],
    ["name of patternProperties", { type: "object", patternProperties: { "a{2,1}": {} } }, "a{2,1}"],
  ])(
    "tool() refuses a schema with a malformed %s when the tool is created",
    (_what, inputSchema, pattern) => {
      expect(() =>
        tool({ name: "bad", description: "x", inputSchema: inputSchema as never, execute: () => "" }),
      ).toThrow(`invalid pattern ${JSON.stringify(pattern)} in the input schema of tool bad`);
    },
  );

  test("tool() accepts properties and values that are only named like a pattern", () => {
    const inputSchema = {
      type: "object",
      properties: { pattern: { type: "string" }, patternProperties: { const: { pattern: "[" } } },
      examples: [{ pattern: "[" }],
    } as const;
    expect(() => tool({ name: "ok", description: "x", inputSchema, execute: () => "" })).not.toThrow();
  });

  test("tool() converts a returned text, JSON or nothing to a result, and keeps a whole result", async () => {
    const returning = (value: unknown) =>
      tool({
        name: "give",
        description: "x",
        inputSchema: { type: "object" },
        execute: () => value as string,
      }).execute({}, context);
    expect(await returning("hi")).toEqual({ output: { type: "text", text: "hi" }, isError: false });
    expect(await returning(undefined)).toEqual({ output: { type: "text", text: "" }, isError: false });
    expect(await returning([1])).toEqual({ output: { type: "json", value: [1] }, isError: false });
    const whole = { output: { type: "text", text: "no" }, isError: true, terminate: true };
    expect(await returning(whole)).toEqual(whole);
  });

  test("tool() counts a tool with a risk above safe as destructive by default", () => {
    const make = (options: { risk?: "high"; destructive?: boolean }) =>
      tool({ name: "t", description: "x", inputSchema: { type: "object" }, execute: () => "", ...options });
    expect([make({}).destructive, make({ risk: "high" }).destructive]).toEqual([false, true]);
    expect(make({ risk: "high", destructive: false }).destructive).toBe(false);
  });

  test("tool() refuses an invalid name and states the rule", () => {
    expect(() =>
      tool({ name: "look up", description: "x", inputSchema: { type: "object" }, execute: () => "" }),
    ).toThrow('invalid tool name "look up": expected 1 to 64 letters');
  });

  test("tool() counts a tool that edits as destructive, and refuses a misspelt risk or concurrency", () => {
    const make = (options: object) =>
      tool({ name: "t", description: "x", inputSchema: { type: "object" }, execute: () => "", ...options });
    expect(make({ edits: true }).destructive).toBe(true);
    expect(() => make({ risk: "harmless" })).toThrow(
      'invalid risk "harmless" of tool t: expected one of safe, high, critical',
    );
    expect(() => make({ concurrency: "serial" })).toThrow(
      `invalid concurrency "serial" of tool t: expected one of parallel, sequential`,
    );
  });

  test("tool() accepts images and files as results, with a text before them and metadata", () => {
    expect(imageResult(new Uint8Array([1, 2]), "image/png", { text: "Look:" }).output).toEqual({
      type: "content",
      parts: [
        { type: "text", text: "Look:" },
        { type: "image", mediaType: "image/png", source: { kind: "base64", data: "AQI=" } },
      ],
    });
    expect(
      fileResult({ url: "https://example.org/a.pdf" }, "application/pdf", { filename: "a.pdf" }).output,
    ).toMatchObject({ parts: [{ type: "file", filename: "a.pdf", source: { kind: "url" } }] });
    expect(textResult("a", { bytes: 1 })).toMatchObject({ isError: false, metadata: { bytes: 1 } });
    expect(errorResult("a")).toEqual({ output: { type: "text", text: "a" }, isError: true });
  });
});

describe("a tool body that is an async generator", () => {
  const watched = (signal: AbortSignal) => {
    const shown: JsonValue[] = [];
    const progress = (update: JsonValue): void => void shown.push(update);
    return { shown, context: { signal, progress } as unknown as ToolContext };
  };
  const base = { name: "dig", description: "x", inputSchema: { type: "object" } } as const;

  test("a tool body that is an async generator yields progress updates and returns the result", async () => {
    const dig = tool({
      ...base,
      execute: async function* () {
        yield { depth: 1 };
        yield { depth: 2 };
        return "gold";
      },
    });
    const { shown, context: watching } = watched(new AbortController().signal);
    expect(await dig.execute({}, watching)).toEqual({
      output: { type: "text", text: "gold" },
      isError: false,
    });
    expect(shown).toEqual([{ depth: 1 }, { depth: 2 }]);
  });

  test("a tool body that is an async generator runs its finally block when the call is cancelled, and has no result", async () => {
    const stop = new AbortController();
    const told: string[] = [];
    const dig = tool({
      ...base,
      execute: async function* () {
        try {
          for (let depth = 0; ; depth++) {
            yield depth;
            if (depth === 2) stop.abort(new Error("enough"));
          }
        } finally {
          told.push("closed");
        }
      },
    });
    const { shown, context: watching } = watched(stop.signal);
    await expect(dig.execute({}, watching)).rejects.toThrow("enough");
    expect(told).toEqual(["closed"]);
    expect(shown).toEqual([0, 1, 2]);
  });

  test("a tool body that is an async generator may yield only JSON, and its errors are thrown", async () => {
    const dig = tool({
      ...base,
      execute: async function* () {
        yield undefined as unknown as JsonValue;
      },
    });
    const { context: watching } = watched(new AbortController().signal);
    await expect(dig.execute({}, watching)).rejects.toMatchObject({ code: "not_json" });
    const fail = tool({
      ...base,
      // oxlint-disable-next-line require-yield -- the generator fails before it can yield
      execute: async function* () {
        throw new Error("rock");
      },
    });
    await expect(fail.execute({}, watching)).rejects.toThrow("rock");
  });
});

test.each([
  [{ input: { type: "object" } }, 'unknown option "input" of tool dig: use "inputSchema"'],
  [{}, "tool dig has no inputSchema"],
])("tool() refuses the options %j and names inputSchema", (options, message) => {
  expect(() => tool({ name: "dig", description: "x", execute: () => "", ...options } as never)).toThrow(
    message,
  );
});
