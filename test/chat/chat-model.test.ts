import { describe, expect, test } from "vitest";
import { Agent } from "../../src/assembly/agent.ts";
import { openRuntime } from "../../src/assembly/open-runtime.ts";
import { tool } from "../../src/capabilities/tools/tool.ts";
import type { Delta, Event } from "../../src/kernel/index.ts";
import { ChatModel } from "../../src/surfaces/cli/chat/model/chat-model.ts";
import { noteOf } from "../../src/surfaces/cli/chat/model/chat-words.ts";
import { scriptedModel } from "../../src/testing/index.ts";

const greet = tool({
  name: "greet",
  description: "Greets",
  inputSchema: { type: "object", properties: { name: { type: "string" } } } as const,
  needsApproval: true,
  execute: ({ name }) => `Hello ${name}`,
});

/** The events and deltas of a run in which a person approves a call. */
async function approvedRun(): Promise<readonly (Event | Delta)[]> {
  await using runtime = await openRuntime({ unknownPrice: "ignore" });
  const model = scriptedModel([
    { text: "One moment.", toolCalls: [{ name: "greet", input: { name: "Ann" } }] },
    "Greeted.",
  ]);
  const agent = new Agent({ name: "host", model, tools: [greet] });
  const run = await agent.submit("Greet Ann", { runtime, streaming: true });
  const items: (Event | Delta)[] = [];
  for await (const item of run.events()) {
    items.push(item);
    if (item.type === "approval_request")
      await run.approve(item.data.approvalId, { decision: "approved", input: { name: "Bob" } });
  }
  return items;
}

describe("the view of a chat", () => {
  test("a chat shows a run as its input, its answers, the call as a person edited it, the answered question, and its end", async () => {
    const model = new ChatModel();
    model.follow("run_1", { isInputShown: false, isQuiet: false });
    const items = await approvedRun();
    const kinds: string[] = [];
    for (const item of items) {
      model.add(item);
      if (model.questions.length > 0) kinds.push("question");
    }
    expect(kinds.length).toBeGreaterThan(0);
    expect(model.questions).toEqual([]);
    expect(model.isWorking).toBe(false);
    expect(model.items.map(({ item }) => item)).toMatchObject([
      { kind: "user", text: "Greet Ann", from: "person" },
      { kind: "answer", text: "One moment.", isLive: false },
      { kind: "call", name: "greet", input: { name: "Bob" }, status: "ok", output: "Hello Bob" },
      { kind: "asked", answer: "yes, edited" },
      { kind: "answer", text: "Greeted." },
      { kind: "end", status: "completed" },
    ]);
  });

  test("a chat shows a question and an agent of a later run, although an earlier run has used the same ids", async () => {
    const model = new ChatModel();
    const named = new Set<string>();
    const hired = {
      taskId: "t0",
      agentId: "lead",
      type: "spawn_start",
      data: { childTaskId: "t1", agentId: "kid" },
    };
    for (const runId of ["run_1", "run_2"]) {
      model.follow(runId, { isInputShown: false, isQuiet: false });
      for (const item of await approvedRun()) {
        if (item.type === "run_end")
          model.add({ ...hired, seq: item.seq, at: item.at, runId } as unknown as Event);
        else model.add(item);
        for (const question of model.questions) named.add(model.nameOf(question));
      }
    }
    const kinds = model.items.map(({ item }) => item.kind);
    expect([kinds.filter((kind) => kind === "asked"), kinds.filter((kind) => kind === "hire")]).toEqual([
      ["asked", "asked"],
      ["hire", "hire"],
    ]);
    expect(named.size).toBe(2);
  });

  test("events that arrive in a chat again after a lost connection change nothing", async () => {
    const [once, twice] = [new ChatModel(), new ChatModel()];
    for (const model of [once, twice]) model.follow("run_1", { isInputShown: true, isQuiet: false });
    const events = (await approvedRun()).filter((item) => "seq" in item);
    for (const event of events) once.add(event);
    for (const event of [...events, ...events]) twice.add(event);
    expect(twice.items.map(({ item }) => item)).toEqual(once.items.map(({ item }) => item));
  });

  test("a chat takes back the text of a failed attempt, and shows a piece that arrives twice once", () => {
    const model = new ChatModel();
    model.follow("run_1", { isInputShown: true, isQuiet: false });
    const of = { runId: "run_1", taskId: "t0", messageSeq: 5 } as const;
    const piece = (attempt: number, offset: number, text: string): Delta =>
      ({ ...of, type: "message_update", kind: "text", attempt, offset, text }) as unknown as Delta;
    model.add(piece(1, 0, "Wrong"));
    expect(model.items.map(({ item }) => item)).toMatchObject([
      { kind: "answer", text: "Wrong", isLive: true },
    ]);
    model.add({ ...of, type: "message_reset", attempt: 2 } as unknown as Delta);
    expect(model.items).toEqual([]);
    for (const text of ["Right", "Right"]) model.add(piece(2, 0, text));
    model.add(piece(2, 5, "."));
    expect(model.items.map(({ item }) => item)).toMatchObject([{ kind: "answer", text: "Right." }]);
  });
});

test("a chat shows the cost of an agent at the agent's line and at the call that started it, and no cost at other calls", async () => {
  await using runtime = await openRuntime({ unknownPrice: "ignore" });
  const usage = { inputTokens: 1_000, outputTokens: 100, costUsd: 0.02 };
  const scout = new Agent({ name: "scout", model: scriptedModel([{ text: "Green.", usage }]), tools: [] });
  const free = tool({
    name: "free",
    description: "Names a task that it did not start",
    inputSchema: { type: "object" } as const,
    execute: () => ({
      output: { type: "text", text: "t1" },
      isError: false,
      metadata: { taskId: "t0" },
    }),
  });
  const model = scriptedModel([
    {
      toolCalls: [
        { name: "scout", input: { task: "Look" } },
        { name: "free", input: {} },
      ],
      usage,
    },
    { text: "Seen.", usage },
  ]);
  const lead = new Agent({ name: "lead", model, tools: [scout.asTool({ description: "Looks" }), free] });
  const run = await lead.submit("Look around", { runtime });
  const chat = new ChatModel();
  chat.follow("run_1", { isInputShown: true, isQuiet: false });
  for await (const item of run.events()) chat.add(item);
  const all = chat.items.map(({ item }) => item);
  expect(all).toContainEqual(expect.objectContaining({ kind: "hire", isOver: true, cost: { usd: 0.02 } }));
  expect(all).toContainEqual(expect.objectContaining({ kind: "call", name: "scout", cost: { usd: 0.02 } }));
  expect(all).toContainEqual(
    expect.objectContaining({ kind: "call", name: "free", status: "ok", cost: null }),
  );
});

test("noteOf() says in the chat that the prompt of a hired agent was sent again", () => {
  const data = { architecture: "hired", name: "prompt_resent", data: { from: "input" } };
  const event = { seq: 1, at: 0, taskId: "t0", agentId: "coder", type: "architecture_event", data };
  expect(noteOf(event as unknown as Event)).toEqual({
    text: "gets its prompt again, because its session does not have it",
    tone: "hold",
  });
});
