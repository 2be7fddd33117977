import { describe, expect, test } from "vitest";
import { Agent, openRuntime, tool, type AgentOptions } from "../../../src/entries/index.ts";
import {
  messageText,
  parseSessionId,
  toolCallsOf,
  type ChatMessage,
  type Guardrail,
  type Model,
  type ModelStreamPart,
  type RunHandle,
  type Store,
} from "../../../src/kernel/index.ts";
import { FakeClock, scriptedModel, type ScriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { settle, until } from "../../runtime/runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

removeStoresAfterEach();

const sessionId = "talk";
const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object" } as const,
  execute: () => "rain",
});
const looks: ScriptStep = { text: "Looking.", toolCalls: [{ name: "look", input: {}, callId: "c1" }] };
const decide = (decision: "block" | "halt") => async () => ({ decision, reason: "not here" }) as const;

function lineOf(message: ChatMessage): string {
  if (message.role !== "tool") {
    const calls = message.role === "assistant" ? toolCallsOf(message).map(({ callId }) => `${callId}?`) : [];
    return [`${message.role}:`, messageText(message), ...calls].join(" ").trim();
  }
  return message.content.map(({ output }) => `tool: ${output.type === "text" ? output.text : ""}`).join(" ");
}

/** Returns the whole conversation of the session, and the entries that are not part of it. */
async function conversation({ sessions }: Store, id: string = sessionId) {
  const entries = await sessions.read(parseSessionId(id), { includeHidden: true });
  const lines = (isVisible: boolean): readonly string[] =>
    entries.flatMap(({ entry, visibility }) =>
      entry.type === "message" && (visibility === "visible") === isVisible ? [lineOf(entry.message)] : [],
    );
  return { said: lines(true), unseen: lines(false) };
}

/** Streams the first text of its script and then hangs until the call is aborted. */
class Hesitant implements Model {
  readonly provider = "scripted";
  readonly modelId = "script";
  readonly begun = Promise.withResolvers<void>();
  readonly script: ScriptedModel;

  constructor(script: readonly ScriptStep[]) {
    this.script = scriptedModel(script);
  }

  generate(...args: Parameters<Model["generate"]>): ReturnType<Model["generate"]> {
    return this.script.generate(...args);
  }

  async *stream(...[request, options]: Parameters<Model["stream"]>): AsyncIterable<ModelStreamPart> {
    for await (const part of this.script.stream(request, options)) {
      yield part;
      if (part.type !== "text_delta" || !part.text.startsWith("half")) continue;
      await new Promise((_resolve, reject) => {
        options?.signal?.addEventListener("abort", () => reject(new Error("aborted")), { once: true });
        this.begun.resolve();
      });
    }
  }
}

describe.each(twoStores)("S1: the session of an interrupted invocation (store: %s)", (_name, prepare) => {
  async function setUp(options: Parameters<typeof openRuntime>[0] = {}) {
    const open = await prepare();
    const store = await open();
    return { open, store, runtime: await openRuntime({ store, unknownPrice: "ignore", ...options }) };
  }

  async function ended(script: readonly ScriptStep[], more: Partial<AgentOptions>, invoke: object = {}) {
    const { store, runtime } = await setUp();
    const model = scriptedModel([...script, "next"]);
    const agent = new Agent({ name: "scout", model, tools: [look], ...more });
    const result = await agent.invoke("Go", { runtime, sessionId, ...invoke });
    const { said } = await conversation(store);
    const plain = new Agent({ name: "plain", model });
    await plain.invoke("And?", { runtime, sessionId });
    const seen = model.calls.at(-1)?.messages.map(lineOf);
    await runtime.close();
    return { result, said, seen };
  }

  const called = ["user: Go", "assistant: Looking. c1?"];
  const guard = (more: Partial<Guardrail>): Partial<AgentOptions> => ({
    guardrails: [{ name: "gate", ...more }],
  });

  test.each<
    readonly [string, readonly ScriptStep[], Partial<AgentOptions>, object, string, string, readonly string[]]
  >([
    [
      "a budget before the first call",
      [],
      {},
      { budget: { maxTurns: 0 } },
      "budget_exhausted",
      "",
      ["user: Go", "assistant: [interrupted: budget_exhausted]"],
    ],
    [
      "a budget after a tool call",
      [looks],
      {},
      { budget: { maxTurns: 1 } },
      "budget_exhausted",
      "Looking.",
      [...called, "tool: rain", "assistant: [interrupted: budget_exhausted]"],
    ],
    [
      "a deadline before the run starts",
      [],
      {},
      { budget: { deadlineMs: 0 } },
      "deadline_exceeded",
      "",
      ["user: Go", "assistant: [interrupted: deadline_exceeded]"],
    ],
    [
      "the budget of turns",
      [looks],
      { maxTurns: 1 },
      {},
      "max_turns",
      "Looking.",
      [...called, "tool: rain", "assistant: [interrupted: max_turns]"],
    ],
    [
      "the output limit",
      [{ text: "cut", stopReason: "length" }],
      {},
      {},
      "max_output",
      "cut",
      ["user: Go", "assistant: cut [interrupted: max_output]"],
    ],
    [
      "a guardrail before a call",
      [looks],
      guard({ beforeCall: decide("halt") }),
      {},
      "guardrail_tripped",
      "Looking.",
      [...called, "tool: [not executed: not here]", "assistant: [interrupted: guardrail: gate]"],
    ],
    [
      "a guardrail after a call",
      [looks],
      guard({ afterCall: decide("halt") }),
      {},
      "guardrail_tripped",
      "Looking.",
      [...called, "tool: [withheld: not here]", "assistant: [interrupted: guardrail: gate]"],
    ],
    [
      "a guardrail at the output",
      ["secret"],
      guard({ onOutput: decide("block") }),
      {},
      "guardrail_tripped",
      "not here",
      ["user: Go", "assistant: not here [interrupted: guardrail: gate]"],
    ],
    [
      "a budget of an architecture without messages of its own",
      ['["look"]', "seen"],
      { architecture: "plan-and-execute" },
      { budget: { maxTurns: 2 } },
      "budget_exhausted",
      "1. look\nseen",
      ["user: Go", "assistant: 1. look\nseen [interrupted: budget_exhausted]"],
    ],
  ])(
    "S1: the conversation ends with exactly one text that names the interruption, and the output has none: %s",
    async (_what, script, more, invoke, status, output, lines) => {
      const { result, said, seen } = await ended(script, more, invoke);
      expect(result).toMatchObject({ status, output });
      expect(said).toEqual(lines);
      expect(seen).toEqual([...lines, "user: And?"]);
    },
  );

  test.each([
    ["cancelled", "cancel"],
    ["deadline_exceeded", "deadline"],
  ] as const)(
    "S1: the streamed part is stored once, with the marker, after a restart: %s",
    async (status, how) => {
      const clock = new FakeClock();
      const { open, runtime } = await setUp({ clock });
      const model = new Hesitant([looks, "half an answer"]);
      const agent = new Agent({ name: "scout", model, tools: [look] });
      const timed = how === "deadline" && { timeoutMs: 1_000 };
      const stream = agent.stream("Go", { runtime, sessionId, ...timed });
      const run = await stream.run();
      await model.begun.promise;
      await (how === "deadline" ? clock.advance(1_500) : run.cancel("enough"));
      expect(await stream.result()).toMatchObject({ status, output: "half an answer" });
      await runtime.close();
      const later = await open();
      const second = await openRuntime({ store: later });
      const text = `assistant: half an answer [interrupted: ${status}]`;
      expect((await conversation(later)).said).toEqual([...called, "tool: rain", text]);
      const script = scriptedModel(["next"]);
      await new Agent({ name: "plain", model: script }).invoke("And?", { runtime: second, sessionId });
      expect(script.calls[0]?.messages.map(lineOf).slice(-2)).toEqual([text, "user: And?"]);
      await second.close();
    },
  );

  test("S1: a run that is cancelled before its start time ends with the marker of an interruption", async () => {
    const clock = new FakeClock();
    const { store, runtime } = await setUp({ clock });
    const agent = new Agent({ name: "scout", model: scriptedModel([]) });
    const run = await agent.submit("Go", { runtime, sessionId, startAt: clock.now() + 60_000 });
    await run.cancel("not needed");
    expect((await run.result()).status).toBe("cancelled");
    expect((await conversation(store)).said).toEqual(["user: Go", "assistant: [interrupted: cancelled]"]);
    await runtime.close();
  });

  test("an input that a guardrail refuses leaves no entry in the session, and neither do messages before it", async () => {
    const { store, runtime } = await setUp();
    const model = scriptedModel(["next"]);
    const guarded = new Agent({ name: "scout", model, ...guard({ onInput: decide("block") }) });
    expect((await guarded.invoke("Go", { runtime, sessionId })).status).toBe("guardrail_tripped");
    expect(await conversation(store)).toEqual({ said: [], unseen: [] });
    const messages = [
      { role: "user", content: "Hello" },
      { role: "assistant", content: "Hi" },
      { role: "user", content: "Go" },
    ] as const;
    const refused = await guarded.invoke(messages, { runtime });
    expect(refused.status).toBe("guardrail_tripped");
    expect(await conversation(store, refused.sessionId)).toEqual({ said: [], unseen: [] });
    await new Agent({ name: "plain", model }).invoke("And?", { runtime, sessionId });
    expect(model.calls[0]?.messages.map(lineOf)).toEqual(["user: And?"]);
    await runtime.close();
  });

  /** A guardrail that waits for a signal of the run at one stage. */
  async function waiting(stage: "onInput" | "onOutput") {
    const { store, runtime } = await setUp();
    const wait: NonNullable<Guardrail["onInput"]> = async (_text, { ctx }) => {
      await ctx.waitForSignal("checked");
      return { decision: "allow" };
    };
    const model = scriptedModel(["secret", "next"]);
    const agent = new Agent({ name: "scout", model, ...guard({ [stage]: wait }) });
    const run = await agent.submit("Go", { runtime, sessionId });
    await until(async () => (await run.snapshot()).status === "waiting");
    return { store, runtime, run, model };
  }

  async function completed(run: RunHandle): Promise<void> {
    await run.resume();
    await settle();
    await run.signal("checked");
    await until(async () => (await run.result()).status === "completed");
  }

  test("an input that no guardrail has checked when the run is cancelled leaves no session entry until the run is resumed", async () => {
    const { store, runtime, run } = await waiting("onInput");
    await run.cancel("enough");
    expect((await run.result()).status).toBe("cancelled");
    expect(await conversation(store)).toEqual({ said: [], unseen: [] });
    await completed(run);
    expect((await conversation(store)).said).toEqual(["user: Go", "assistant: secret"]);
    await runtime.close();
  });

  test("an input of an agent with input guardrails leaves no session entry if the run is cancelled before it starts", async () => {
    const clock = new FakeClock();
    const { store, runtime } = await setUp({ clock });
    const model = scriptedModel([]);
    const agent = new Agent({ name: "scout", model, ...guard({ onInput: decide("block") }) });
    const run = await agent.submit("Go", { runtime, sessionId, startAt: clock.now() + 60_000 });
    await run.cancel("not needed");
    await run.result();
    expect(await conversation(store)).toEqual({ said: [], unseen: [] });
    await runtime.close();
  });

  test("an answer that no output guardrail has checked when the run is cancelled is not in the session", async () => {
    const { store, runtime, run } = await waiting("onOutput");
    await run.cancel("enough");
    expect(await run.result()).toMatchObject({ status: "cancelled", output: "" });
    expect((await conversation(store)).said).toEqual(["user: Go", "assistant: [interrupted: cancelled]"]);
    await runtime.close();
  });

  test("continue() repeats an interrupted turn, and the next context has no marker of the interruption", async () => {
    const { store, runtime } = await setUp();
    const model = scriptedModel([{ text: "cut", stopReason: "length" }, "whole", "next"]);
    const agent = new Agent({ name: "scout", model });
    await agent.invoke("Go", { runtime, sessionId });
    expect((await agent.continue(sessionId, { runtime })).output).toBe("whole");
    expect(model.calls[1]?.messages.map(lineOf)).toEqual(["user: Go"]);
    expect((await conversation(store)).said).toEqual([
      "user: Go",
      "assistant: cut [interrupted: max_output]",
      "assistant: whole",
    ]);
    await agent.invoke("And?", { runtime, sessionId });
    expect(model.calls[2]?.messages.map(lineOf)).toEqual(["user: Go", "assistant: whole", "user: And?"]);
    await runtime.close();
  });

  test("a continuation that is stopped before the model says anything adds no second interruption marker", async () => {
    const { store, runtime } = await setUp();
    const agent = new Agent({ name: "scout", model: scriptedModel([looks]), tools: [look], maxTurns: 1 });
    await agent.invoke("Go", { runtime, sessionId });
    const result = await agent.continue(sessionId, { runtime, budget: { maxTurns: 0 } });
    expect(result.status).toBe("budget_exhausted");
    const { said } = await conversation(store);
    expect(said.filter((line) => line.includes("[interrupted"))).toEqual([
      "assistant: [interrupted: max_turns]",
    ]);
    await runtime.close();
  });

  test("a model's text that looks like an interruption marker is an answer", async () => {
    const { runtime } = await setUp();
    const agent = new Agent({ name: "scout", model: scriptedModel(["[interrupted: cancelled]"]) });
    await agent.invoke("Go", { runtime, sessionId });
    const result = await agent.continue(sessionId, { runtime });
    expect(result.error?.message).toContain("ends with an answer");
    await runtime.close();
  });
});

describe.each(twoStores)("S2, O2, O3: exhausted retries (store: %s)", (_name, prepare) => {
  const busy = (): ScriptStep => ({ error: Object.assign(new Error("busy"), { status: 503 }) });
  const retry = { maxRetries: 1, baseDelayMs: 0 };
  const options = { name: "scout", tools: [look], retry };

  async function exhausted() {
    const open = await prepare();
    const first = await openRuntime({ store: await open(), unknownPrice: "ignore" });
    const agent = new Agent({ ...options, model: scriptedModel([looks, busy(), busy()]) });
    const { runId, status } = await agent.invoke("Go", { runtime: first, sessionId });
    expect(status).toBe("failed");
    await first.close();
    const store = await open();
    return { store, runId, runtime: await openRuntime({ store, unknownPrice: "ignore" }) };
  }

  test("O2: an input whose retries are exhausted stays pending, and unsent() lists run, input and error after a restart", async () => {
    const { store, runtime, runId } = await exhausted();
    expect(await conversation(store)).toEqual({ said: [], unseen: ["user: Go"] });
    expect(await runtime.sessions.unsent(sessionId)).toMatchObject([
      { run: { runId, status: "failed" }, input: "Go", error: { code: "model_overloaded" } },
    ]);
    await runtime.close();
  });

  test("O2: after exhausted retries, the next context contains neither the input nor the failed attempt", async () => {
    const { runtime } = await exhausted();
    const model = scriptedModel(["next"]);
    await new Agent({ ...options, model }).invoke("And?", { runtime, sessionId });
    expect(model.calls[0]?.messages.map(lineOf)).toEqual(["user: And?"]);
    await runtime.close();
  });

  test("S2: resume() after exhausted retries continues after the last paid step and leaves one pair in the session", async () => {
    const { store, runtime, runId } = await exhausted();
    const model = scriptedModel(["It rains."]);
    const agent = new Agent({ ...options, model });
    expect((await agent.resume(runId, { runtime })).output).toBe("It rains.");
    expect(model.calls).toHaveLength(1);
    expect(await conversation(store)).toEqual({
      said: ["user: Go", "assistant: Looking. c1?", "tool: rain", "assistant: It rains."],
      unseen: [],
    });
    expect(await runtime.sessions.unsent(sessionId)).toEqual([]);
    await runtime.close();
  });

  test("S2: resend() submits an input whose retries are exhausted exactly once, and the failed attempt stays out of the session", async () => {
    const { store, runtime, runId } = await exhausted();
    const model = scriptedModel(["It rains.", "next"]);
    const agent = new Agent({ ...options, model });
    runtime.register(agent);
    const again = await runtime.sessions.resend(runId);
    expect((await again.result()).output).toBe("It rains.");
    expect((await runtime.sessions.resend(runId)).runId).toBe(again.runId);
    expect(await runtime.sessions.unsent(sessionId)).toEqual([]);
    expect((await conversation(store)).said).toEqual(["user: Go", "assistant: It rains."]);
    await agent.invoke("And?", { runtime, sessionId });
    expect(model.calls[1]?.messages.map(lineOf)).toEqual(["user: Go", "assistant: It rains.", "user: And?"]);
    await runtime.close();
  });

  test("S2: resume() and topUp() refuse a run whose input was sent again, so that the input is answered once", async () => {
    const { store, runtime, runId } = await exhausted();
    runtime.register(new Agent({ ...options, model: scriptedModel(["It rains."]) }));
    const again = await runtime.sessions.resend(runId);
    await again.result();
    const failed = await runtime.find(runId);
    const refused = { code: "already_exists", details: { resent: again.runId } };
    await expect(failed?.resume()).rejects.toMatchObject(refused);
    await expect(failed?.topUp({ maxTurns: 1 })).rejects.toMatchObject(refused);
    expect((await conversation(store)).said).toEqual(["user: Go", "assistant: It rains."]);
    await runtime.close();
  });
});
