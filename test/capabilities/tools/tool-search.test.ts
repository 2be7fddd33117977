import { describe, expect, test } from "vitest";
import { fetchTool, toolSearch } from "../../../src/capabilities/tools/index.ts";
import { tool } from "../../../src/entries/index.ts";
import type { JsonObject, Tool } from "../../../src/kernel/index.ts";
import { callTool, textOf } from "./call-tool.ts";

function many(count: number): readonly Tool[] {
  return Array.from({ length: count }, (_, index) =>
    tool({
      name: `tool_${index}`,
      description: `Does thing number ${index}. ${"It has a great deal to say about itself. ".repeat(20)}`,
      inputSchema: {
        type: "object",
        properties: { amount: { type: "number", description: `how much of ${index}` } },
        required: ["amount"],
      } as const,
      ...(index === 7 && { risk: "critical" as const }),
      execute: () => `did ${index}`,
    }),
  );
}

const invoices = tool({
  name: "createInvoice",
  description: "Writes a bill for a customer",
  inputSchema: { type: "object", properties: { customer: { type: "string" } } },
  execute: () => "",
});

function last(tools: readonly Tool[]): Tool {
  const search = tools.at(-1);
  if (search === undefined) throw new Error("no tools");
  return search;
}

describe("toolSearch()", () => {
  test("toolSearch() leaves a few tools unchanged, and hides many tools behind a search tool at the end of the list", () => {
    expect(toolSearch({ tools: many(19) }).map(({ name }) => name)).toEqual(many(19).map(({ name }) => name));
    const tools = many(200);
    const all = toolSearch({ tools, keep: ["tool_3"] });
    expect(all.map(({ name }) => name)).toEqual([...tools.map(({ name }) => name), "search_tools"]);
    expect(all[3]).toBe(tools[3]);
    expect(all[4]).toMatchObject({
      foundBy: "search_tools",
      description: tools[4]?.description,
      inputSchema: tools[4]?.inputSchema,
    });
    expect(last(all).foundBy).toBeUndefined();
  });

  test("toolSearch() keeps the fields that the checks before a call use", () => {
    const shown = toolSearch({ tools: many(30) });
    expect(shown[7]).toMatchObject({ risk: "critical", destructive: true, concurrency: "parallel" });
    expect(shown[8]).toMatchObject({ risk: "safe", destructive: false });
    const tools = [...many(30), fetchTool({ allow: ["docs.test"] })];
    const stub = toolSearch({ tools })[30];
    expect(stub?.represents).toBe(tools[30]);
    expect(stub?.approvalScope?.({ url: "http://one.test/" })).toBe("one.test");
    expect(stub?.approvalScope?.({ url: "http://docs.test/" })).toBeNull();
  });

  test("toolSearch() finds tools by name and by words, prefers rare words and always returns the same order", async () => {
    const search = last(toolSearch({ tools: [...many(30), invoices], maxResults: 2 }));
    const found = async (args: JsonObject): Promise<unknown> => {
      const { output, isError } = await callTool(search, args);
      expect(isError).toBe(false);
      return output.type === "json" ? output.value : output;
    };
    expect(await found({ names: '["tool_2","nothing"]' })).toEqual({
      found: ["tool_2"],
      problem: "there is no tool named nothing",
    });
    for (const query of ["make an invoice", "bill the customer", "invoices thing"]) {
      const first = await found({ query });
      expect(first).toMatchObject({ found: expect.arrayContaining(["createInvoice"]) as string[] });
      expect(await found({ query })).toEqual(first);
    }
    expect(await found({ query: "thing number" })).toEqual({ found: ["tool_0", "tool_1"] });
    expect((await callTool(search, { query: "zzz qqq" })).isError).toBe(true);
    expect((await callTool(search, { names: ["nothing"] })).isError).toBe(true);
    expect((await callTool(search, {})).isError).toBe(true);
  });

  test("X3: the tool that toolSearch() finds answers invalid arguments with its schema, and executes valid arguments at once", async () => {
    const shown = toolSearch({ tools: many(30) });
    const stub = shown[5];
    if (stub === undefined) throw new Error("no stub");
    const refused = await callTool(stub, { much: 1 });
    expect(textOf(refused)).toMatch(
      /must have required property 'amount'.*Its arguments are:\n\{"type":"object"/s,
    );
    expect(textOf(await callTool(stub, { amount: "3" }))).toBe("did 5");
  });

  test("toolSearch() refuses an unknown name in keep and a name that a tool already has", () => {
    expect(() => toolSearch({ tools: many(2), keep: ["x"] })).toThrow("not one of the tools");
    expect(() => toolSearch({ tools: many(2), name: "tool_1" })).toThrow("already named tool_1");
  });
});
