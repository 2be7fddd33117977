import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  askHumanTool,
  memoryTools,
  spawnAgentTool,
  todoTool,
} from "../../../src/capabilities/tools/index.ts";
import { openMemory } from "../../../src/assembly/memory.ts";
import { Agent, openRuntime } from "../../../src/entries/index.ts";
import {
  Fault,
  formatAgentId,
  type ApprovalDecision,
  type Event,
  type JsonValue,
  type RunHandle,
  type ToolContext,
} from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { agent, agentId, setUp, settle } from "../../runtime/runtime-setup.ts";
import { callTool, tempFolder, textOf } from "./call-tool.ts";

type Asked = Event<"approval_request">;

async function question(run: RunHandle): Promise<Asked> {
  for await (const event of run.events({ types: ["approval_request"] }))
    if ("seq" in event && event.type === "approval_request") return event;
  throw new Error("no approval was requested");
}

describe("the tool ask_human", () => {
  const ask: ScriptStep = {
    toolCalls: [{ name: "ask_human", input: { question: "Which colour?", options: '["red","blue"]' } }],
  };

  test("ask_human waits across a restart and returns the input of the approval as the answer", async () => {
    const store = `sqlite:${join(await tempFolder(), "reeve.db")}` as const;
    const painter = (script: readonly ScriptStep[]) =>
      new Agent({ name: "painter", model: scriptedModel(script), tools: [askHumanTool()] });
    const first = await openRuntime({ store, unknownPrice: "ignore" });
    const started = await first.submit(painter([ask]), "Paint.");
    const asked = await question(started);
    expect(asked.data).toMatchObject({
      toolName: "ask_human",
      input: { question: "Which colour?", options: ["red", "blue"] },
      reason: "Which colour?",
    });
    await first.close();

    const second = await openRuntime({ store, unknownPrice: "ignore" });
    const seen: string[] = [];
    second.register(
      painter([
        ({ messages }) => {
          seen.push(JSON.stringify(messages.at(-1)));
          return "Painted.";
        },
      ]),
    );
    const run = await second.find(started.runId);
    await run?.as("grace").approve(asked.data.approvalId, { decision: "approved", input: "blue" });
    expect((await run?.result())?.output).toBe("Painted.");
    expect(seen[0]).toContain('"text":"blue"');
    const events: Event[] = [];
    for await (const event of run?.events() ?? []) if ("seq" in event) events.push(event);
    expect(events.filter(({ type }) => type === "approval_request")).toHaveLength(1);
    expect(events.find(({ type }) => type === "approval_decision")?.data).toMatchObject({
      decision: { by: "grace" },
    });
    await second.close();
  });

  test("B5: the deadline clock of a run stops while its task waits for a person, and continues afterwards", async () => {
    const { clock, runtime } = await setUp();
    const asker = agent(
      "asker",
      async (ctx) => {
        const asked = { toolName: "asker", callId: "colour", input: "Which?", reason: "a colour is wanted" };
        const decision = await ctx.approval(asked);
        await ctx.sleepUntil((await ctx.now()) + 900);
        return decision.decision === "approved" ? (decision.input ?? null) : decision.decision;
      },
      { budget: { deadlineMs: 1_000 } },
    );
    const run = await runtime.submit(asker, null);
    const { approvalId } = (await question(run)).data;
    await settle();
    await clock.advance(50_000);
    await settle();
    await run.approve(approvalId, { decision: "approved", input: "red" });
    await settle();
    await clock.advance(900);
    expect(await run.result()).toMatchObject({ status: "completed", output: "red" });
    await runtime.close();
  });

  test("ask_human returns a denial or a missing answer as an error result, and any JSON as the answer", async () => {
    const answering = (decision: ApprovalDecision) =>
      callTool(askHumanTool({ about: "Ask the owner." }), { question: "?" }, {
        ctx: { approval: async () => decision },
      } as unknown as Partial<ToolContext>);
    for (const decision of ["approved", "denied", "skipped"] as const)
      expect((await answering({ decision })).isError).toBe(true);
    expect(textOf(await answering({ decision: "denied", reason: "not mine to say" }))).toContain(
      "not mine to say",
    );
    expect((await answering({ decision: "approved", input: ["a", 1] })).output).toEqual({
      type: "json",
      value: ["a", 1],
    });
    const { description, suspends, timeoutMs, destructive } = askHumanTool({ about: "Ask the owner." });
    expect(description).toContain("Ask the owner.");
    expect([suspends, timeoutMs, destructive]).toEqual([true, null, false]);
  });
});

describe("the tool spawn_agent", () => {
  const hire = spawnAgentTool({
    agents: {
      poet: { agentId: agentId("poet"), description: "writes verses" },
      failing: { agentId: agentId("failing"), description: "fails" },
    },
  });
  const poet = agent("poet", async (ctx) => `ode to ${JSON.stringify(ctx.input)}`);
  const failing = agent("failing", async () => {
    throw new Fault("invalid_argument", "no muse");
  });
  const lead = (inputs: readonly JsonValue[]) =>
    agent(
      "lead",
      async (ctx) => {
        const calls = inputs.map((input, index) => ({
          callId: String(index),
          toolName: "spawn_agent",
          input,
        }));
        return (await ctx.tools(calls)).map((result) => ({ ...result })) as unknown as JsonValue;
      },
      { tools: [hire] },
    );

  test("spawn_agent spawns agents concurrently and returns their output; a failure is an error result", async () => {
    const { runtime } = await setUp();
    runtime.register(poet);
    runtime.register(failing);
    const run = await runtime.submit(
      lead([
        { agent: "poet", task: "rain" },
        { agent: "failing", task: "x" },
        { agent: "nobody", task: "x" },
      ]),
      null,
    );
    const { output } = await run.result();
    expect(output).toMatchObject([
      { output: { text: 'ode to "rain"' }, isError: false, metadata: { agent: "poet", status: "completed" } },
      { output: { text: "failing ended with the status failed: no muse." }, isError: true },
      {
        output: { text: expect.stringContaining("agent must be equal to one of the allowed values") },
        isError: true,
      },
    ]);
    await runtime.close();
  });

  test("H4: spawn_agent returns a refused seat as a result that lists the tasks that hold the seats", async () => {
    const { runtime } = await setUp();
    runtime.register(poet);
    const run = await runtime.submit(lead([{ agent: "poet", task: "rain" }]), null, {
      spawnBudget: { maxAgents: 1 },
    });
    expect((await run.result()).output).toMatchObject([
      {
        isError: true,
        output: { text: expect.stringMatching(/^poet was not spawned: every seat is taken/) },
        metadata: { agent: "poet", holders: [{ status: "seated" }] },
      },
    ]);
    await runtime.close();
  });

  test("spawn_agent refuses an empty list of agents and an invalid id when it is created", () => {
    expect(() => spawnAgentTool({ agents: {} })).toThrow("at least one agent");
    expect(hire.suspends).toBe(true);
    expect(hire.description).toContain("- poet: writes verses");
    expect(formatAgentId({ name: "poet" })).toBe("poet");
  });
});

describe("the tool todo", () => {
  test("the tool todo returns the plan and refuses two items with the status doing", async () => {
    const items = [
      { text: "dig", status: "done" },
      { text: "sow\n now", status: "doing" },
      { text: "reap", status: "open" },
      { text: "burn", status: "dropped" },
    ];
    const result = await callTool(todoTool(), { items: JSON.stringify(items) });
    expect(textOf(result)).toBe("[x] dig\n[>] sow now\n[ ] reap\n[-] burn");
    expect(result.metadata).toEqual({ total: 4, done: 1, dropped: 1, open: 1 });
    const two = items.map(({ text }) => ({ text, status: "doing" }));
    expect(textOf(await callTool(todoTool(), { items: two }))).toBe(
      "4 items have the status doing: keep one and set the others to open",
    );
    expect(textOf(await callTool(todoTool({ maxItems: 1 }), { items }))).toContain("at most 1");
    expect(textOf(await callTool(todoTool(), { items: [] }))).toBe("[the list is empty]");
  });
});

describe("memory tools", () => {
  test("memory tools use the user of the run as their scope, and a repeated call stores nothing twice", async () => {
    const memory = await openMemory({ path: join(await tempFolder(), "memory.db") });
    const [recall, remember, forget] = memoryTools(memory);
    if (recall === undefined || remember === undefined || forget === undefined) throw new Error("three");
    const ada = { facts: { userId: "ada" } } as unknown as Partial<ToolContext>;
    const bob = { facts: { userId: "bob" } } as unknown as Partial<ToolContext>;
    const fact = { subject: "Ada", predicate: "likes", object: "tea" };
    for (let attempt = 0; attempt < 2; attempt++)
      expect(textOf(await callTool(remember, { text: "Ada drank tea", fact }, ada))).toBe("remembered");
    expect(textOf(await callTool(recall, { query: "tea" }, ada))).toBe(
      "run/task/1/fact: Ada likes tea\nrun/task/1/text: Ada drank tea",
    );
    expect(textOf(await callTool(recall, { query: "tea" }, bob))).toBe("[nothing found]");
    expect(textOf(await callTool(forget, { ids: ["run/task/1/text"] }, bob))).toBe("deleted 0");
    expect(textOf(await callTool(forget, { ids: ["run/task/1/text"] }, ada))).toBe("deleted 1");
    for (const input of [{ query: "x", userId: "bob" }, { query: "" }])
      expect((await callTool(recall, input, ada)).isError).toBe(true);
    expect((await callTool(remember, {}, ada)).isError).toBe(true);
    expect([recall.destructive, remember.destructive, forget.destructive]).toEqual([false, false, true]);
    await memory.close();
  });
});
