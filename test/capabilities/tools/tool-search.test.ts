import { describe, expect, test } from "vitest";
import { fetchTool, toolSearch } from "../../../src/capabilities/tools/index.ts";
import { Agent, openRuntime, permissions, tool } from "../../../src/index.ts";
import type { ModelRequest, Tool } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { callTool, textOf } from "./call-tool.ts";

const calls: unknown[] = [];

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
      execute: (input) => {
        calls.push([index, input]);
        return `did ${index}`;
      },
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
  test("returns few tools unchanged, and many as stubs in the same order with the search tool at the end", () => {
    expect(toolSearch({ tools: many(19) }).map(({ name }) => name)).toEqual(many(19).map(({ name }) => name));
    const tools = many(200);
    const shown = toolSearch({ tools, keep: ["tool_3"] });
    expect(shown.map(({ name }) => name)).toEqual([...tools.map(({ name }) => name), "search_tools"]);
    expect(shown[3]).toBe(tools[3]);
    expect(shown[4]).toMatchObject({
      description: "Does thing number 4. [arguments: ask search_tools]",
      inputSchema: { type: "object", additionalProperties: true },
    });
    const size = (list: readonly Tool[]): number =>
      JSON.stringify(list.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })))
        .length;
    expect(size(shown)).toBeLessThan(size(tools) / 5);
  });

  test("keeps the fields that the gate uses in the stubs", () => {
    const shown = toolSearch({ tools: many(30) });
    expect(shown[7]).toMatchObject({ risk: "critical", destructive: true, concurrency: "parallel" });
    expect(shown[8]).toMatchObject({ risk: "safe", destructive: false });
    const tools = [...many(30), fetchTool({ allow: ["docs.test"] })];
    const stub = toolSearch({ tools })[30];
    expect(stub?.represents).toBe(tools[30]);
    expect(stub?.approvalScope?.({ url: "http://one.test/" })).toBe("one.test");
    expect(stub?.approvalScope?.({ url: "http://docs.test/" })).toBeNull();
  });

  test("finds schemas by name and by words, prefers rare words and always returns the same order", async () => {
    const search = last(toolSearch({ tools: [...many(30), invoices], maxResults: 2 }));
    const byName = await callTool(search, { names: '["tool_2","nothing"]' });
    expect(textOf(byName)).toContain('arguments: {"type":"object","properties":{"amount"');
    expect(textOf(byName)).toContain("[there is no tool named nothing]");
    for (const query of ["make an invoice", "bill the customer", "invoices thing"]) {
      const found = await callTool(search, { query });
      expect(found.metadata?.["given"]).toContain("createInvoice");
      expect(textOf(found)).toMatch(/^createInvoice: /);
      expect(await callTool(search, { query })).toEqual(found);
    }
    expect((await callTool(search, { query: "zzz qqq" })).isError).toBe(true);
    expect((await callTool(search, {})).isError).toBe(true);
    expect((await callTool(search, { query: "thing number" })).metadata?.["given"]).toHaveLength(2);
  });

  test("X3: answers invalid arguments with the schema, and executes valid ones at once", async () => {
    const shown = toolSearch({ tools: many(30) });
    const stub = shown[5];
    if (stub === undefined) throw new Error("no stub");
    const refused = await callTool(stub, { much: 1 });
    expect(textOf(refused)).toMatch(
      /must have required property 'amount'.*Its arguments are:\n\{"type":"object"/s,
    );
    expect(textOf(await callTool(stub, { amount: "3" }))).toBe("did 5");
  });

  test("X1, X2: the list stays the same, byte for byte, during a run, and tools are called by their own names", async () => {
    calls.length = 0;
    const requests: ModelRequest[] = [];
    const noting = (reply: Parameters<typeof scriptedModel>[0][number]) => (request: ModelRequest) => {
      requests.push(request);
      return typeof reply === "function" ? reply(request) : reply;
    };
    const agent = new Agent({
      name: "clerk",
      model: scriptedModel([
        noting({ toolCalls: [{ name: "search_tools", input: { query: "thing number 7" } }] }),
        noting({
          toolCalls: [
            { name: "tool_7", input: { amount: 1 } },
            { name: "tool_8", input: { amount: "2" } },
          ],
        }),
        noting("Done."),
      ]),
      tools: toolSearch({ tools: many(40) }),
      permissions: permissions({ deny: ["tool_7"] }),
    });
    const runtime = await openRuntime({ unknownPrice: "ignore" });
    const run = await runtime.submit(agent, "Do it.");
    expect((await run.result()).status).toBe("completed");
    await runtime.close();
    expect(calls).toEqual([[8, { amount: 2 }]]);
    const lists = requests.map(({ tools }) => JSON.stringify(tools));
    expect(new Set(lists).size).toBe(1);
    // Each request starts with the messages of the previous one.
    const sent = requests.map(({ messages }) => messages.map((message) => JSON.stringify(message)));
    for (const [index, messages] of sent.entries())
      expect(messages.slice(0, sent[index - 1]?.length ?? 0)).toEqual(sent[index - 1] ?? []);
  });

  test("refuses an unknown name in keep and a name that a tool already has", () => {
    expect(() => toolSearch({ tools: many(2), keep: ["x"] })).toThrow("not one of the tools");
    expect(() => toolSearch({ tools: many(2), name: "tool_1" })).toThrow("already named tool_1");
  });
});
