import { describe, expect, test } from "vitest";
import { Agent, memoryStore, openRuntime, sha256, tool, type AgentOptions } from "../../src/entries/index.ts";
import {
  messageText,
  type Event,
  type JsonValue,
  type RunHandle,
  type RunResult,
  type Store,
} from "../../src/kernel/index.ts";
import { scriptedModel, type ScriptedReply } from "../../src/testing/index.ts";
import { findRun } from "../runtime/find-run.ts";

const look = tool({
  name: "look",
  description: "The weather in a town",
  inputSchema: { type: "object", properties: { town: { type: "string" } }, required: ["town"] },
  execute: ({ town }) => ({ town, weather: "rain" }),
});

const text = (words: string) => ({ output: { type: "text", text: words }, isError: false }) as const;

const again: ScriptedReply = { text: "Let me look.", toolCalls: [{ name: "look", input: { town: "Sens" } }] };

async function run(
  options: Partial<AgentOptions>,
  input: JsonValue = "Where?",
  store: Store = memoryStore({ hash: sha256 }),
): Promise<{ result: RunResult<JsonValue>; events: Event[] }> {
  const runtime = await openRuntime({ store, unknownPrice: "ignore" });
  const agent = new Agent({ name: "scout", model: scriptedModel([]), tools: [look], ...options });
  const handle = await runtime.submit(agent, input);
  const events: Event[] = [];
  for await (const event of handle.events()) if ("seq" in event) events.push(event);
  const result = await handle.result();
  await runtime.close();
  return { result, events };
}

describe("an agent without sub-agents", () => {
  test("an agent calls a tool and answers, and its events are recorded in order", async () => {
    const { result, events } = await run({ model: scriptedModel([again, "Go to Blois."]) });
    expect(result).toMatchObject({ status: "completed", output: "Go to Blois.", turns: 2, error: null });
    expect(events.map(({ type }) => type)).toEqual([
      "run_start",
      "task_start",
      "input",
      "before_agent_start",
      "context",
      "agent_start",
      "turn_start",
      "message_start",
      "message_end",
      "tool_execution_start",
      "tool_execution_end",
      "turn_end",
      "turn_start",
      "message_start",
      "message_end",
      "turn_end",
      "agent_end",
      "save_point",
      "settled",
      "task_end",
      "run_end",
    ]);
  });

  test("S1: the messages of a run are stored in the session with the commit that ends the task, each linked to the previous one", async () => {
    const store = memoryStore({ hash: sha256 });
    const { result } = await run({ model: scriptedModel([again, "Go to Blois."]) }, "Where?", store);
    const entries = await store.sessions.read(result.sessionId);
    const roles = entries.map(({ entry }) => (entry.type === "message" ? entry.message.role : entry.type));
    expect(roles).toEqual(["user", "assistant", "tool", "assistant"]);
    expect(entries.map(({ entry }) => entry.parentId)).toEqual([
      null,
      ...entries.slice(0, -1).map(({ entry }) => entry.id),
    ]);
  });

  test("an agent continues its session, which leaves out messages of a failed run", async () => {
    const store = memoryStore({ hash: sha256 });
    const runtime = await openRuntime({ store, unknownPrice: "ignore" });
    const error = Object.assign(new Error("bad key"), { status: 401 });
    const model = scriptedModel([again, "Go to Blois.", { error }, "By train."]);
    const scout = new Agent({ name: "scout", model, tools: [look] });
    const first = await (await runtime.submit(scout, "Where?")).result();
    const { sessionId } = first;
    expect((await (await runtime.submit(scout, "When?", { sessionId })).result()).status).toBe("failed");
    expect((await (await runtime.submit(scout, "How?", { sessionId })).result()).output).toBe("By train.");
    const said = model.calls
      .at(-1)
      ?.messages.map((message) => `${message.role} ${messageText(message)}`.trim());
    expect(said).toEqual([
      "user Where?",
      "assistant Let me look.",
      "tool",
      "assistant Go to Blois.",
      "user How?",
    ]);
    const entries = (await store.sessions.read(sessionId)).map(({ entry }) => entry);
    expect(entries).toHaveLength(6);
    expect(entries.map(({ parentId }) => parentId)).toEqual([
      null,
      ...entries.slice(0, -1).map(({ id }) => id),
    ]);
    await runtime.close();
  });

  test("the instructions of an agent are built once per run, even if another process resumes the run", async () => {
    const store = memoryStore({ hash: sha256 });
    let builds = 0;
    const instructions = { build: async () => ({ text: `version ${++builds}`, fromCache: false }) };
    const model = scriptedModel([again, "Go to Blois."]);
    let asked = false;
    const slow = tool({
      name: "look",
      description: "Looks",
      inputSchema: { type: "object" },
      execute: async (_input, { ctx }) => JSON.stringify(await ctx.waitForSignal("seen")),
      suspends: true,
    });
    const scout = (): Agent => new Agent({ name: "scout", model, tools: [slow], instructions });
    const one = await openRuntime({ store, unknownPrice: "ignore" });
    let handle = await one.submit(scout(), "Where?");
    for await (const event of handle.events()) if ((asked = event.type === "task_suspend")) break;
    await one.close();
    const two = await openRuntime({ store, unknownPrice: "ignore" });
    two.register(scout());
    handle = await findRun(two, handle);
    await handle.signal("seen", "rain");
    expect((await handle.result()).output).toBe("Go to Blois.");
    expect({ asked, builds }).toEqual({ asked: true, builds: 1 });
    expect(model.calls.map(({ messages: [first] }) => first?.content)).toEqual(["version 1", "version 1"]);
    await two.close();
  });

  test("S1, S2: the user message of a failed run stays pending, and no entry is visible", async () => {
    const store = memoryStore({ hash: sha256 });
    const error = Object.assign(new Error("bad key"), { status: 401 });
    const { result } = await run({ model: scriptedModel([{ error }]) }, "Where?", store);
    expect(result).toMatchObject({ status: "failed", error: { code: "model_auth" } });
    const entries = await store.sessions.read(result.sessionId, { includeHidden: true });
    expect(entries).toMatchObject([{ visibility: "pending", entry: { id: result.runId, taskId: "t0" } }]);
  });

  test("an agent that reaches maxTurns ends as max_turns with its last text", async () => {
    const { result } = await run({ model: scriptedModel([again, again]), maxTurns: 2 });
    expect(result).toMatchObject({
      status: "max_turns",
      interruptionReason: "max_turns_exceeded",
      output: "Let me look.",
    });
  });

  test("an agent that reaches maxTurns ignores blank text next to a tool call", async () => {
    const { result } = await run({
      model: scriptedModel([again, { ...again, text: "\n\n" }]),
      maxTurns: 2,
    });
    expect(result).toMatchObject({ status: "max_turns", output: "Let me look." });
  });

  test("the output of an agent is the text of the last turn, not text next to earlier tool calls", async () => {
    const end = { ...look, execute: async () => ({ ...text("Sens"), terminate: true }) };
    const { result } = await run({
      model: scriptedModel([again, { ...again, text: "", toolCalls: [{ name: "end", input: {} }] }]),
      tools: [look, { ...end, name: "end", inputSchema: { type: "object" }, parse: (given) => given }],
    });
    expect(result).toMatchObject({ status: "completed", output: "", turns: 2 });
  });

  test("B5, S1: an agent without budget left stops as budget_exhausted, with its partial output and its messages stored", async () => {
    const store = memoryStore({ hash: sha256 });
    const options = { model: scriptedModel([again, again]), budget: { maxTurns: 1 } };
    const { result, events } = await run(options, "Where?", store);
    expect(result).toMatchObject({
      status: "budget_exhausted",
      output: "Let me look.",
      error: { code: "budget_exhausted", details: { dimension: "turns", limit: 1 } },
    });
    expect(events.slice(-5).map(({ type }) => type)).toEqual([
      "agent_end",
      "save_point",
      "settled",
      "task_end",
      "run_end",
    ]);
    const entries = await store.sessions.read(result.sessionId);
    const roles = entries.map(({ entry }) => (entry.type === "message" ? entry.message.role : entry.type));
    expect(roles).toEqual(["user", "assistant", "tool", "assistant"]);
    expect(JSON.stringify(entries.at(-1)?.entry)).toContain('"[interrupted: budget_exhausted]"');
  });

  test("S1: a call that was not executed when the run was cancelled gets a result with the reason", async () => {
    const store = memoryStore({ hash: sha256 });
    const runtime = await openRuntime({ store, unknownPrice: "ignore" });
    const held = tool({
      name: "held",
      description: "Asks first",
      inputSchema: { type: "object" },
      needsApproval: true,
      execute: () => "done",
    });
    const model = scriptedModel([{ toolCalls: [{ name: "held", input: {} }] }]);
    const handle = await runtime.submit(new Agent({ name: "scout", model, tools: [held] }), "Where?");
    for await (const event of handle.events()) if (event.type === "approval_request") break;
    await handle.cancel("enough");
    expect((await handle.result()).status).toBe("cancelled");
    const entries = await store.sessions.read(handle.sessionId);
    await runtime.close();
    expect(entries).toHaveLength(4);
    expect(JSON.stringify(entries.at(-2)?.entry)).toContain("[not executed: enough]");
    expect(JSON.stringify(entries.at(-1)?.entry)).toContain('"[interrupted: cancelled]"');
  });

  test("S2: a user message is pending in the session after submission and visible exactly once after the run", async () => {
    const store = memoryStore({ hash: sha256 });
    const runtime = await openRuntime({ store, unknownPrice: "ignore" });
    const agent = new Agent({ name: "scout", model: scriptedModel(["Blois.", "Tours."]) });
    const first = await runtime.submit(agent, "Where?");
    const { sessionId } = first;
    const seen = await store.sessions.read(sessionId, { includeHidden: true });
    expect(seen).toMatchObject([{ visibility: "pending", entry: { id: first.runId } }]);
    await first.result();
    const second = await runtime.submit(agent, "And then?", { sessionId });
    await second.result();
    const entries = (await store.sessions.read(sessionId)).map(({ entry }) => entry);
    await runtime.close();
    expect(entries.map(({ id }) => id)).toEqual([
      first.runId,
      `${first.runId}/t0/1`,
      second.runId,
      `${second.runId}/t0/1`,
    ]);
    expect(entries.map(({ parentId }) => parentId)).toEqual([
      null,
      ...entries.slice(0, -1).map(({ id }) => id),
    ]);
  });

  test("a failed tool, an unknown tool and invalid arguments become tool results that the model receives", async () => {
    const broken = tool({
      name: "broken",
      description: "Fails",
      inputSchema: { type: "object" },
      execute: () => {
        throw new Error("no such luck");
      },
    });
    const toolCalls = [
      { name: "broken", input: {} },
      { name: "look", input: { town: 7 } },
      { name: "missing", input: {} },
    ];
    const model = scriptedModel([{ toolCalls }, "I give up."]);
    const { result, events } = await run({ tools: [broken, look], model });
    expect(result.output).toBe("I give up.");
    const ends = events.flatMap((event) => (event.type === "tool_execution_end" ? [event.data] : []));
    const texts = ends
      .toSorted((one, other) => (one.callId < other.callId ? -1 : 1))
      .map(({ result: { output } }) => (output.type === "text" ? output.text : ""));
    expect(texts[0]).toContain("no such luck");
    expect(texts[1]).toContain("town must be string");
    expect(texts[2]).toContain("there is no tool missing; there are: broken, look");
  });

  test("steering messages arrive after the tools of a turn and follow-ups when the agent would stop, one at a time", async () => {
    const store = memoryStore({ hash: sha256 });
    const runtime = await openRuntime({ store, unknownPrice: "ignore" });
    let handle: RunHandle | undefined;
    const slow = tool({
      name: "look",
      description: "Looks",
      inputSchema: { type: "object" },
      execute: async () => {
        await handle?.steer("Only in France.");
        await handle?.steer("And by train.");
        await handle?.followUp("Thanks. And back?");
        return "seen";
      },
    });
    const model = scriptedModel([again, "France then.", "By train.", "The same way."]);
    handle = await runtime.submit(new Agent({ name: "scout", model, tools: [slow] }), "Where?");
    const { output, status, turns } = await handle.result();
    expect({ output, status, turns }).toEqual({ output: "The same way.", status: "completed", turns: 4 });
    const heard = model.calls
      .map(({ messages }) => messages.at(-1))
      .map((message) => message && messageText(message));
    expect(heard).toEqual(["Where?", "Only in France.", "And by train.", "Thanks. And back?"]);
    const roles = model.calls.at(-1)?.messages.map(({ role }) => role);
    expect(roles).toEqual(["user", "assistant", "tool", "user", "assistant", "user", "assistant", "user"]);
    const events: Event[] = [];
    for await (const event of handle.events()) if ("seq" in event) events.push(event);
    const injected = events.flatMap((event) =>
      event.type === "architecture_event" ? [event.data.name] : [],
    );
    expect(injected).toEqual([
      "react.steering_injected",
      "react.steering_injected",
      "react.follow_up_injected",
    ]);
    await runtime.close();
  });

  test("an agent refuses an invalid input and says what it accepts", async () => {
    const { result } = await run({}, { town: "Sens" });
    expect(result).toMatchObject({
      status: "failed",
      error: {
        code: "invalid_argument",
        message:
          "invalid input of agent scout: expected a text, a list of text, image and file parts, a list of messages, " +
          "or { prompt, output } with one of these as the prompt",
      },
    });
  });
});
