import { describe, expect, test } from "vitest";
import { toolSearch } from "../../../src/capabilities/tools/index.ts";
import { Agent, permissions, tool } from "../../../src/entries/index.ts";
import type { ModelRequest, Runtime, Tool } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { openPlace, places, type PlaceName } from "../../agents/interception/gate/place.ts";

type Reply = Parameters<typeof scriptedModel>[0][number];

function thing(index: number, calls: unknown[] = []): Tool {
  return tool({
    name: `tool_${index}`,
    description: `Does thing number ${index}.`,
    inputSchema: {
      type: "object",
      properties: { amount: { type: "number" } },
      required: ["amount"],
    } as const,
    execute: (input) => {
      calls.push([index, input]);
      return `did ${index}`;
    },
  });
}

function things(count: number, calls?: unknown[]): readonly Tool[] {
  return Array.from({ length: count }, (_, index) => thing(index, calls));
}

/** A scripted model that records the requests it receives. */
function recording(requests: ModelRequest[], replies: readonly Reply[]): ReturnType<typeof scriptedModel> {
  return scriptedModel(
    replies.map((reply) => (request: ModelRequest) => {
      requests.push(request);
      return typeof reply === "function" ? reply(request) : reply;
    }),
  );
}

function sentNames(requests: readonly ModelRequest[]): readonly (readonly string[])[] {
  return requests.map(({ tools = [] }) => tools.map(({ name }) => name));
}

const search = (...names: string[]): Reply => ({ toolCalls: [{ name: "search_tools", input: { names } }] });

/**
 * Starts a run that finds `tool_25` and then waits for a person. `finish` lets another process, in which the agent has
 * `after` tools instead of `before`, complete it.
 */
async function interrupted(
  name: PlaceName,
  requests: ModelRequest[],
  counts: { readonly before: number; readonly after: number },
): Promise<{
  readonly second: Agent;
  readonly finish: () => Promise<{ readonly sessionId: string; readonly runtime: Runtime }>;
}> {
  const place = await openPlace(name);
  const ask = tool({
    name: "ask",
    description: "Asks",
    inputSchema: { type: "object" } as const,
    needsApproval: true,
    execute: () => "asked",
  });
  const clerk = (count: number, ...replies: readonly Reply[]): Agent =>
    new Agent({
      name: "clerk",
      model: recording(requests, replies),
      tools: toolSearch({ tools: [...things(count), ask], keep: ["ask"] }),
    });
  const first = clerk(counts.before, search("tool_25"), { toolCalls: [{ name: "ask", input: {} }] });
  const started = await (await place.restart(first)).submit(first, "Do it.");
  let approvalId = "";
  for await (const event of started.events({ types: ["approval_request"] })) {
    if (event.type === "approval_request") ({ approvalId } = event.data);
    break;
  }
  const second = clerk(counts.after, search("tool_2"), "Done.", "Again.");
  return {
    second,
    finish: async () => {
      const runtime = await place.restart(second);
      const run = await place.find(started.runId);
      await run.approve(approvalId, { decision: "approved" });
      const { status, sessionId } = await run.result();
      expect(status).toBe("completed");
      return { sessionId, runtime };
    },
  };
}

describe("an agent with toolSearch()", () => {
  test("X2, X4: toolSearch() sends the model the kept tools, the search tool and the found tools, which keep their own names", async () => {
    const calls: unknown[] = [];
    const requests: ModelRequest[] = [];
    const model = recording(requests, [
      { toolCalls: [{ name: "search_tools", input: { query: "thing number 7" } }] },
      {
        toolCalls: [
          { name: "tool_7", input: { amount: 1 } },
          { name: "tool_8", input: { amount: "2" } },
        ],
      },
      "Done.",
    ]);
    const agent = new Agent({
      name: "clerk",
      model,
      tools: toolSearch({ tools: things(500, calls), keep: ["tool_3"], maxResults: 1 }),
      permissions: permissions({ deny: ["tool_7"] }),
    });
    expect((await agent.invoke("Do it.")).status).toBe("completed");
    expect(calls).toEqual([[8, { amount: 2 }]]);
    expect(sentNames(requests)).toEqual([
      ["tool_3", "search_tools"],
      ["tool_3", "search_tools", "tool_7"],
      ["tool_3", "search_tools", "tool_7", "tool_8"], // a called tool counts as found
    ]);
    expect(requests[1]?.tools?.[2]).toEqual({
      name: "tool_7",
      description: "Does thing number 7.",
      inputSchema: thing(7).inputSchema,
    });
    for (const { tools } of requests) expect(JSON.stringify(tools).length).toBeLessThan(2_000);
  });

  test.each(places)(
    "X4: an agent with toolSearch() sends the same tools after a restart and in the next invocation: %s",
    async (name) => {
      const requests: ModelRequest[] = [];
      const { second, finish } = await interrupted(name, requests, { before: 30, after: 30 });
      const { sessionId, runtime } = await finish();
      await (await runtime.submit(second, "And now?", { sessionId })).result();
      const always = ["ask", "search_tools"];
      expect(sentNames(requests)).toEqual([
        always,
        [...always, "tool_25"],
        [...always, "tool_25"],
        [...always, "tool_25", "tool_2"],
        [...always, "tool_25", "tool_2"],
      ]);
    },
  );

  test.each(places)(
    "X4: an agent with toolSearch() does not send a found tool that the agent no longer has after a restart: %s",
    async (name) => {
      const requests: ModelRequest[] = [];
      const { finish } = await interrupted(name, requests, { before: 30, after: 24 });
      await finish();
      const always = ["ask", "search_tools"];
      expect(sentNames(requests)).toEqual([always, [...always, "tool_25"], always, [...always, "tool_2"]]);
    },
  );

  test("an agent with toolSearch() drops a found tool that it no longer has, and answers a call of that tool with an error", async () => {
    const requests: ModelRequest[] = [];
    let count = 30;
    const removing: Reply = () => {
      count = 25;
      return { toolCalls: [{ name: "tool_27", input: { amount: 1 } }] };
    };
    const agent = new Agent({
      name: "clerk",
      model: recording(requests, [
        search("tool_3", "tool_27"),
        removing,
        search("tool_27"),
        "Done.",
        "Again.",
      ]),
      tools: () => toolSearch({ tools: things(count) }),
    });
    const { sessionId } = await agent.invoke("Do it.");
    await agent.invoke("And now?", { sessionId });
    expect(sentNames(requests)).toEqual([
      ["search_tools"],
      ["search_tools", "tool_3", "tool_27"],
      ["search_tools", "tool_3"],
      ["search_tools", "tool_3"],
      ["search_tools", "tool_3"],
    ]);
    const told = JSON.stringify(requests.at(-1)?.messages);
    expect(told).toContain("there is no tool tool_27; there are: search_tools");
    expect(told).toContain("there is no tool named tool_27");
  });

  test("an agent with toolSearch() sends at most 64 found tools, and a dropped tool again once it is found again", async () => {
    const requests: ModelRequest[] = [];
    const names = Array.from({ length: 80 }, (_, index) => `tool_${index}`);
    const agent = new Agent({
      name: "clerk",
      model: recording(requests, [search(...names), search("tool_0"), "Done."]),
      tools: toolSearch({ tools: things(500) }),
    });
    await agent.invoke("Do it.");
    expect(sentNames(requests).slice(1)).toEqual([
      ["search_tools", ...names.slice(16)],
      ["search_tools", ...names.slice(17), "tool_0"],
    ]);
  });

  test("an agent with toolSearch() sends the tools of the earlier request as a prefix when a tool is found", async () => {
    const requests: ModelRequest[] = [];
    const agent = new Agent({
      name: "clerk",
      model: recording(requests, [search("tool_9"), search("tool_1", "tool_9"), "Done."]),
      tools: toolSearch({ tools: things(500), keep: ["tool_499"] }),
    });
    await agent.invoke("Do it.");
    for (const [index, { tools = [], messages }] of requests.entries()) {
      const before = requests[index - 1];
      expect(tools.slice(0, before?.tools?.length ?? 0)).toEqual(before?.tools ?? []);
      expect(messages.slice(0, before?.messages.length ?? 0)).toEqual(before?.messages ?? []);
    }
  });

  test("an agent with toolSearch() lists all tools for a planner, which cannot search", async () => {
    const requests: ModelRequest[] = [];
    const agent = new Agent({
      name: "planner",
      architecture: "rewoo",
      model: recording(requests, ['[{"id":"E1","tool":"tool_29","args":{"amount":1}}]', "Done."]),
      tools: toolSearch({ tools: things(30) }),
    });
    await agent.invoke("Do it.");
    expect(JSON.stringify(requests[0]?.messages)).toContain("- tool_29: Does thing number 29.");
  });
});
