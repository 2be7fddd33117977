import { describe, expect, test } from "vitest";
import { Agent, openRuntime, tool } from "../../../src/entries/index.ts";
import type { JsonValue, RunContext } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent as hosted } from "../../runtime/runtime-setup.ts";

interface Town {
  readonly name: string;
  readonly mayor?: string;
  readonly founded: Date;
}

const anyInput = { type: "object" } as const;

async function resultOf(execute: () => object): Promise<JsonValue> {
  const look = tool({ name: "look", description: "Looks", inputSchema: anyInput, execute });
  const model = scriptedModel([{ toolCalls: [{ name: "look", input: {} }] }, "Done."]);
  await new Agent({ name: "clerk", model, tools: [look] }).invoke("Go.");
  const last = model.calls[1]?.messages.at(-1);
  return (last?.role === "tool" ? (last.content[0]?.output ?? null) : null) as unknown as JsonValue;
}

describe("the result of a tool", () => {
  test("the result of a tool is converted with toJSON, and undefined members are left out", async () => {
    const town = (): Town => ({ name: "Sens", mayor: undefined as never, founded: new Date(0) });
    expect(await resultOf(town)).toEqual({
      type: "json",
      value: { name: "Sens", founded: "1970-01-01T00:00:00.000Z" },
    });
    const nested = () => ({ towns: [town()], url: new URL("https://a.example/") });
    expect(await resultOf(nested)).toEqual({
      type: "json",
      value: {
        towns: [{ name: "Sens", founded: "1970-01-01T00:00:00.000Z" }],
        url: "https://a.example/",
      },
    });
  });

  test("the result of a tool may have an interface type with optional fields, or be a class with toJSON", async () => {
    class Money {
      readonly #cents = 150;
      toJSON(): object {
        return { euros: this.#cents / 100 };
      }
    }
    const find = tool({
      name: "find",
      description: "Finds a town",
      inputSchema: anyInput,
      execute: async (): Promise<Town> => ({ name: "Sens", founded: new Date(0) }),
    });
    expect(find.name).toBe("find");
    expect(await resultOf(() => new Money())).toEqual({ type: "json", value: { euros: 1.5 } });
  });

  const cyclic: { self?: object } = {};
  cyclic.self = cyclic;
  test.each([
    ["NaN", { n: Number.NaN }, ".n"],
    ["a bigint", { n: 1n }, ".n"],
    ["a cycle", cyclic, ".self"],
    ["a Map", { m: new Map([["a", 1]]) }, ".m"],
    ["a function", { f: () => 1 }, ".f"],
  ] as const)(
    "a tool result that contains %s is refused, and the model sees the path",
    async (_name, value, path) => {
      const output = JSON.stringify(await resultOf(() => value));
      expect(output).toContain(`the result of the tool${path}`);
    },
  );

  test("a member of a tool result named __proto__ stays an ordinary member", async () => {
    const value = JSON.parse('{"__proto__": {"a": 1}, "d": null}') as object;
    const result = await resultOf(() => ({ value, at: new Date(0) }));
    expect(JSON.stringify(result)).toContain('"__proto__":{"a":1}');
  });
});

test("J10: ctx.step refuses a date on the first execution, unlike a tool", async () => {
  const runtime = await openRuntime({ unknownPrice: "ignore" });
  const code = (ctx: RunContext) => ctx.step("now", async () => new Date(0) as unknown as JsonValue);
  const result = await (await runtime.submit(hosted("clock", code), null)).result();
  await runtime.close();
  expect(result).toMatchObject({ status: "failed", error: { code: "not_json" } });
});

describe("a tool with a valibot schema", () => {
  const validate = (value: unknown) => ({ value });

  test("a tool with a valibot schema that has no JSON Schema is refused, and the error says what to pass instead", () => {
    const schema = { "~standard": { version: 1, vendor: "valibot", validate } } as const;
    expect(() => tool({ name: "look", description: "", inputSchema: schema, execute: () => "" })).toThrow(
      /toStandardJsonSchema\(schema\) of @valibot\/to-json-schema/u,
    );
  });

  test("a tool with a valibot schema that is wrapped for Standard JSON Schema works", () => {
    const jsonSchema = { input: () => ({ type: "object" }), output: () => ({ type: "object" }) };
    const schema = { "~standard": { version: 1, vendor: "valibot", validate, jsonSchema } } as const;
    const look = tool({ name: "look", description: "", inputSchema: schema, execute: () => "" });
    expect(look.inputSchema).toEqual({ type: "object" });
  });
});
