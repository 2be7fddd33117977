import { afterEach, describe, expect, it } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { tool } from "../../../src/capabilities/index.ts";
import {
  formatRunId,
  HistoryRetention,
  messageText,
  rootTaskId,
  type Event,
  type EventType,
  type ForkOptions,
  type Model,
  type ModelRequest,
  type RunHandle,
  type Runtime,
  type Store,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { FakeClock, scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { agent, readAll } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const opened: Runtime[] = [];
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.close();
});

function textsOf(request: ModelRequest | undefined): readonly string[] {
  return (request?.messages ?? []).map(messageText);
}

const look = tool({
  name: "look",
  description: "Looks.",
  inputSchema: { type: "object" },
  execute: async () => "seen",
});
const call: ScriptStep = { toolCalls: [{ name: "look", input: {} }] };
const other = "scripted/other";

interface Setup {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly model: ReturnType<typeof scriptedModel>;
  readonly second: ReturnType<typeof scriptedModel>;
  readonly scout: Agent;
  readonly send: (input: string, sessionId?: string) => Promise<RunHandle>;
}

async function setUp(
  open: () => Promise<Store>,
  script: readonly ScriptStep[],
  otherScript: readonly ScriptStep[] = [],
): Promise<Setup> {
  const store = await open();
  const second = scriptedModel(otherScript, { modelId: "other" });
  const resolveModel = (name: string): Model | undefined => (name === other ? second : undefined);
  const runtime = await createRuntime({ store, unknownPrice: "ignore", resolveModel });
  opened.push(runtime);
  const model = scriptedModel(script);
  const scout = new Agent({ name: "scout", model, tools: [look] });
  const send = async (input: string, sessionId?: string): Promise<RunHandle> => {
    const run = await runtime.submit(scout, input, sessionId === undefined ? {} : { sessionId });
    await run.result();
    return run;
  };
  return { store, runtime, model, second, scout, send };
}

/** Seq of the last event of the commit that contains the first event of this type. */
async function seqOf(store: Store, { runId }: RunHandle, type: EventType): Promise<number> {
  for await (const { events = [] } of store.journal.read(runId))
    if (events.some((event) => event.type === type)) return events.at(-1)?.seq ?? -1;
  throw new Error(`${runId} has no ${type}`);
}

async function forkEvent(store: Store, { runId }: RunHandle): Promise<Event<"run_fork">> {
  const event = (await readAll(store, runId)).find((each) => each.type === "run_fork");
  return event as Event<"run_fork">;
}

describe.each(twoStores)("%s: fork({ input })", (_name, prepare) => {
  it("fork({ input }) adds the message before the first model call if the fork starts before that call", async () => {
    const { store, model, send } = await setUp(await prepare(), ["one", "two", "three", "four"]);
    const origin = await send("first?");
    const turn = await seqOf(store, origin, "context");
    const answered = (await readAll(store, origin.runId)).find(({ type }) => type === "message_end");
    const cuts = [0, turn, (answered?.seq ?? 0) - 1];
    for (const [index, at] of cuts.entries()) {
      const fork = await origin.fork({ at, input: "and second?" });
      expect(await fork.result()).toMatchObject({ status: "completed", turns: 1 });
      expect(textsOf(model.calls[index + 1])).toEqual(["first?", "and second?"]);
      expect((await forkEvent(store, fork)).data).toMatchObject({ at, input: "and second?" });
    }
  });

  it("fork({ input }) adds the message after the tool results before the fork point, and pays no copied call", async () => {
    const { store, model, send, runtime } = await setUp(await prepare(), [call, "one", "two", "three"]);
    const origin = await send("look");
    for (const [index, type] of (["message_end", "tool_execution_end"] as const).entries()) {
      const fork = await origin.fork({ at: await seqOf(store, origin, type), input: "briefly" });
      const { turns, usage } = await fork.result();
      expect(turns).toBe(1);
      expect(model.calls).toHaveLength(3 + index);
      const request = model.calls[2 + index];
      expect(request?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"]);
      expect(textsOf(request).at(-1)).toBe("briefly");
      const { data } = await forkEvent(store, fork);
      expect(data.inherited.outputTokens).toBeGreaterThan(0);
      expect((await fork.summary()).usage).toEqual(usage);
      const path = await runtime.sessions.path(fork.sessionId);
      const said = path.map((entry) => (entry.type === "message" ? messageText(entry.message) : ""));
      expect(said).toContain("briefly");
    }
  });

  it("fork({ input }) continues the conversation of a completed run as the same run", async () => {
    const { store, model, send, scout, runtime } = await setUp(await prepare(), [
      call,
      "one",
      "two",
      "three",
    ]);
    const origin = await send("first?", "trip");
    const at = await store.events.lastSeq(origin.runId);
    const before = await store.sessions.read(origin.sessionId, { includeHidden: true });
    const fork = await origin.fork({ at, input: "second?" });
    expect(await fork.result()).toMatchObject({ status: "completed", output: "two", turns: 1 });
    expect(textsOf(model.calls[2])).toEqual(["first?", "", "", "one", "second?"]);
    expect(await store.sessions.read(origin.sessionId, { includeHidden: true })).toEqual(before);
    const last = await runtime.submit(scout, "third?", { sessionId: fork.sessionId });
    await last.result();
    expect(textsOf(model.calls[3])).toEqual(["first?", "", "", "one", "second?", "two", "third?"]);
    expect(await origin.result()).toMatchObject({ output: "one" });
  });

  it("fork({ input }) resumes a run that failed, with the message before the call that failed", async () => {
    const refused = { error: Object.assign(new Error("no"), { status: 400 }) };
    const { store, model, send } = await setUp(await prepare(), [call, refused, "two"]);
    const origin = await send("look");
    expect((await origin.result()).status).toBe("failed");
    const fork = await origin.fork({ at: await store.events.lastSeq(origin.runId), input: "again" });
    expect(await fork.result()).toMatchObject({ status: "completed", output: "two", turns: 1 });
    expect(model.calls).toHaveLength(3);
    expect(textsOf(model.calls[2])).toEqual(["look", "", "", "again"]);
    expect((await origin.result()).status).toBe("failed");
  });

  it("fork({ input }) shows the marker of an interrupted run before the message", async () => {
    const { store, runtime } = await setUp(await prepare(), []);
    const model = scriptedModel([call, "two"]);
    const hasty = new Agent({ name: "hasty", model, tools: [look], maxTurns: 1 });
    const origin = await runtime.submit(hasty, "look", {});
    expect((await origin.result()).status).toBe("max_turns");
    const fork = await origin.fork({ at: await store.events.lastSeq(origin.runId), input: "go on" });
    expect(await fork.result()).toMatchObject({ status: "completed", output: "two" });
    expect(textsOf(model.calls[1]).slice(-2)).toEqual(["[interrupted: max_turns]", "go on"]);
  });

  it("fork({ input }) accepts content parts, and starts a custom agent again with the message", async () => {
    const { store, runtime, model, send } = await setUp(await prepare(), ["one", "two"]);
    const image = {
      type: "image",
      mediaType: "image/png",
      source: { kind: "base64", data: "AAAA" },
    } as const;
    const origin = await send("first?");
    const fork = await origin.fork({ at: 0, input: [{ type: "text", text: "see" }, image] });
    await fork.result();
    expect(model.calls[1]?.messages.at(-1)?.content).toEqual([{ type: "text", text: "see" }, image]);
    const echo = agent("echo", async (ctx) => ctx.input);
    const echoed = await runtime.submit(echo, "a");
    await echoed.result();
    const again = await echoed.fork({ at: await store.events.lastSeq(echoed.runId), input: "b" });
    expect((await again.result()).output).toBe("b");
  });
});

describe.each(twoStores)("%s: fork({ model })", (_name, prepare) => {
  it("fork({ model }) makes the calls after the fork point and those of later invocations with that model", async () => {
    const { store, model, second, send, runtime, scout } = await setUp(
      await prepare(),
      [call, "one", "later"],
      ["other one", "other two", "other three"],
    );
    const origin = await send("look", "trip");
    const at = await seqOf(store, origin, "tool_execution_end");
    const fork = await origin.fork({ at, model: other });
    expect(await fork.result()).toMatchObject({ output: "other one", turns: 1 });
    expect(textsOf(second.calls[0])).toEqual(["look", "", ""]);
    expect((await forkEvent(store, fork)).data.model).toEqual({ provider: "scripted", modelId: "other" });
    const next = await runtime.submit(scout, "and?", { sessionId: fork.sessionId });
    expect((await next.result()).output).toBe("other two");
    const start = await origin.fork({ at: 0, model: other, input: "now" });
    expect((await start.result()).output).toBe("other three");
    expect(textsOf(second.calls[2])).toEqual(["look", "now"]);
    expect(model.calls).toHaveLength(2);
    expect((await (await runtime.submit(scout, "?", { sessionId: "trip" })).result()).output).toBe("later");
  });

  it("fork({ model }) applies the model to a failed run that is resumed, and to the next message of a completed run", async () => {
    const refused = { error: Object.assign(new Error("no"), { status: 400 }) };
    const { store, second, send } = await setUp(
      await prepare(),
      [call, refused, "done"],
      ["other one", "other two"],
    );
    const failed = await send("look");
    const fork = await failed.fork({ at: await store.events.lastSeq(failed.runId), model: other });
    expect((await fork.result()).status).toBe("failed");
    await fork.resume();
    expect(await fork.result()).toMatchObject({ status: "completed", output: "other one" });
    const completed = await send("more");
    const at = await store.events.lastSeq(completed.runId);
    const next = await completed.fork({ at, model: other, input: "and?" });
    expect((await next.result()).output).toBe("other two");
    expect(textsOf(second.calls[1])).toEqual(["more", "done", "and?"]);
  });

  it("fork({ model }) leaves the models of children and of other roles unchanged", async () => {
    const { store, runtime, second } = await setUp(await prepare(), [], ["lead done"]);
    const childModel = scriptedModel(["child one", "child two"]);
    const child = new Agent({ name: "child", description: "Helps.", model: childModel });
    const lead = scriptedModel([{ toolCalls: [{ name: "child", input: { task: "a" } }] }, "one"]);
    const boss = new Agent({ name: "boss", model: lead, tools: [child.asTool()] });
    const origin = await runtime.submit(boss, "go");
    await origin.result();
    const fork = await origin.fork({ at: await seqOf(store, origin, "message_end"), model: other });
    expect((await fork.result()).output).toBe("lead done");
    expect(childModel.calls).toHaveLength(2);
    expect(second.calls).toHaveLength(1);
  });
});

describe.each(twoStores)("%s: a fork with changes", (_name, prepare) => {
  it("fork() with an id returns the same fork for the same options, and refuses other options under this id", async () => {
    const { store, send } = await setUp(await prepare(), ["one", "two"], ["other"]);
    const origin = await send("first?");
    const options: ForkOptions = { at: 0, input: "and", model: other, runId: formatRunId("copy") };
    const fork = await origin.fork(options);
    expect((await origin.fork(options)).sessionId).toBe(fork.sessionId);
    const { model: _model, ...plain } = options;
    for (const changed of [{ ...options, input: "or" }, plain, { at: 0, runId: options.runId ?? "" }])
      await expect(origin.fork(changed)).rejects.toMatchObject({ code: "already_exists" });
    await fork.result();
    expect((await store.journal.list()).runs).toHaveLength(2);
  });

  it("fork() is refused before anything is stored if an option is invalid", async () => {
    const { store, send } = await setUp(await prepare(), ["one"]);
    const origin = await send("first?");
    const at = await store.events.lastSeq(origin.runId);
    const inputs = [
      "",
      "  ",
      [],
      [{ type: "text", text: " " }],
      [{ type: "tool_call" }],
      3,
      null,
      { prompt: "x" },
    ];
    for (const input of inputs)
      await expect(origin.fork({ at, input: input as string })).rejects.toMatchObject({
        code: "invalid_argument",
      });
    for (const model of ["", "nothing", "/x", 3, null])
      await expect(origin.fork({ at, model: model as string })).rejects.toMatchObject({
        code: "invalid_argument",
      });
    await expect(origin.fork({ at, model: "scripted/unknown" })).rejects.toMatchObject({
      code: "model_not_found",
      message: expect.stringContaining('"scripted/unknown"'),
    });
    for (const wrong of [at + 1, -1, 1.5])
      await expect(origin.fork({ at: wrong, input: "x" })).rejects.toMatchObject({
        code: "invalid_argument",
      });
    await expect(origin.fork({ at, inputs: "x" } as unknown as ForkOptions)).rejects.toThrow("input");
    expect((await store.journal.list()).runs).toHaveLength(1);
  });

  it("fork({ input }) is refused if the history of the run was erased", async () => {
    const { store, runtime, scout } = await setUp(await prepare(), ["one"]);
    const origin = await runtime.submit(scout, "secret", { retention: HistoryRetention.NONE });
    await origin.result();
    const at = await store.events.lastSeq(origin.runId);
    await expect(origin.fork({ at, input: "x" })).rejects.toThrow("its history was erased");
  });
});

it("an agent reads steering that arrived before the start of its run before its first model call", async () => {
  const clock = new FakeClock();
  const runtime = await createRuntime({ store: "memory:", clock, unknownPrice: "ignore" });
  opened.push(runtime);
  const model = scriptedModel(["one"]);
  const run = await runtime.submit(new Agent({ name: "scout", model }), "go", {
    startAt: clock.now() + 1_000,
  });
  await run.steer("left");
  await clock.advance(1_000);
  expect((await run.result()).turns).toBe(1);
  expect(textsOf(model.calls[0])).toEqual(["go", "left"]);
});

describe.each(twoStores)("%s: fork({ instructions, tools, toolResults })", (_name, prepare) => {
  const twice: ScriptStep = {
    toolCalls: [
      { name: "look", input: {} },
      { name: "wait", input: {} },
    ],
  };
  const wait = tool({
    name: "wait",
    description: "Waits.",
    inputSchema: { type: "object" },
    execute: async () => "waited",
  });

  async function setUpChanges(open: () => Promise<Store>, script: readonly ScriptStep[]) {
    const { store, runtime } = await setUp(open, []);
    const model = scriptedModel(script);
    const keeper = new Agent({ name: "keeper", model, tools: [look, wait], instructions: "Keep." });
    const origin = await runtime.submit(keeper, "go");
    await origin.result();
    const events = await readAll(store, origin.runId);
    const starts = events.filter(({ type }) => type === "message_start");
    const calls = events.flatMap((event) => (event.type === "tool_execution_end" ? [event.data.callId] : []));
    return { store, runtime, model, origin, starts, calls, keeper };
  }

  it("fork({ instructions, tools, toolResults }) sends the changes with the next model call, and repeats no tool", async () => {
    const { store, model, origin, starts, calls } = await setUpChanges(await prepare(), [
      twice,
      "one",
      "two",
    ]);
    const fork = await origin.fork({
      at: starts[1]?.seq ?? 0,
      keepsCommit: true,
      instructions: "Keep less.",
      tools: ["wait"],
      toolResults: [{ callId: calls[0] ?? "", output: { found: 0 }, isError: true }],
      budget: { maxCostUsd: 0.5 },
    });
    expect(await fork.result()).toMatchObject({ status: "completed", output: "two", turns: 1 });
    const request = model.calls[2];
    expect(request?.messages[0]).toMatchObject({ role: "system", content: "Keep less." });
    expect(request?.tools?.map(({ name }) => name)).toEqual(["wait"]);
    expect(request?.messages.at(-1)?.content).toMatchObject([
      { callId: calls[0], isError: true, output: { type: "json", value: { found: 0 } } },
      { callId: calls[1], isError: false },
    ]);
    const { data } = await forkEvent(store, fork);
    expect(data).toMatchObject({
      instructions: "Keep less.",
      tools: ["wait"],
      budget: { maxCostUsd: 0.5 },
      toolResults: [{ callId: calls[0], toolName: "look", isError: true }],
    });
    const events = await readAll(store, fork.runId);
    const own = events.slice(events.findIndex(({ type }) => type === "run_fork")).map(({ type }) => type);
    expect(own).not.toContain("tool_execution_start");
    // J11: the shared call shows what it was sent, not what the fork changed.
    const made = events.filter(({ type }) => type === "message_start").map(({ seq }) => seq);
    const sent = await Promise.all([made[0] ?? 0, made.at(-1) ?? 0].map((seq) => fork.modelRequest(seq)));
    expect(sent.map(({ instructions, tools }) => [instructions, tools])).toMatchObject([
      [{ value: "Keep." }, { value: [{ name: "look" }, { name: "wait" }] }],
      [{ value: "Keep less." }, { value: [{ name: "wait" }] }],
    ]);
    const { accounts } = (await fork.snapshot()).ledger;
    expect(accounts[rootTaskId]).toMatchObject({ caps: { nanoUsd: 500_000_000 } });
  });

  it("fork({ tools }) denies a call of a tool that the fork leaves out", async () => {
    const { model, origin, starts } = await setUpChanges(await prepare(), [call, "one", call, "two"]);
    const fork = await origin.fork({ at: starts[1]?.seq ?? 0, keepsCommit: true, tools: ["wait"] });
    expect(await fork.result()).toMatchObject({ status: "completed", output: "two" });
    const last = model.calls[3]?.messages.at(-1)?.content;
    expect(last).toMatchObject([
      { isError: true, output: { text: expect.stringContaining("may not be called in this run") } },
    ]);
  });

  it("fork({ input }) from the beginning starts with another message and keeps nothing of the first message", async () => {
    const { model, origin, starts, store } = await setUpChanges(await prepare(), [call, "one", "two"]);
    const fork = await origin.fork({
      at: starts[0]?.seq ?? 0,
      input: "go elsewhere",
      replacesInput: true,
      instructions: "Keep more.",
    });
    expect(await fork.result()).toMatchObject({ status: "completed", output: "two" });
    expect(textsOf(model.calls[2])).toEqual(["Keep more.", "go elsewhere"]);
    expect((await fork.summary()).title).toBe("go elsewhere");
    const path = await store.sessions.read(fork.sessionId);
    expect(path.map(({ entry }) => (entry.type === "message" ? messageText(entry.message) : ""))).toEqual([
      "go elsewhere",
      "two",
    ]);
    expect((await readAll(store, fork.runId))[0]?.data).toMatchObject({ input: "go elsewhere" });
  });

  it("fork() is refused before anything is stored if the name of a tool, a call or an event does not match the run", async () => {
    const { origin, starts, store } = await setUpChanges(await prepare(), [call, "one"]);
    const second = starts[1]?.seq ?? 0;
    const last = await store.events.lastSeq(origin.runId);
    const refused: readonly (readonly [ForkOptions, string])[] = [
      [{ at: second, tools: ["rm"] }, 'there is no tool "rm"; use some of look, wait'],
      [{ at: second, toolResults: [{ callId: "x", output: "" }] }, 'no result of a call "x"'],
      [{ at: second, input: "x", replacesInput: true }, "the model has seen it there"],
      [{ at: second, budget: { deadlineMs: 1 } as never }, "a fork has the deadline of its origin"],
      [{ at: second, taskId: "t7", instructions: "x" }, "t7: the task does not exist there"],
      [{ at: second, taskId: "t7", input: "x" }, "cannot add an input for t7"],
      [{ at: last, instructions: "x" }, "t0: the task has ended there"],
      [{ at: second, instructions: " " }, "expected a text that is not empty"],
    ];
    for (const [options, message] of refused)
      await expect(origin.fork(options)).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining(message),
      });
    expect((await store.journal.list({})).runs).toHaveLength(1);
  });

  it("fork() can change a child, whose parent receives the new answer", async () => {
    const { store, runtime } = await setUp(await prepare(), []);
    const childModel = scriptedModel(["child one", "child two"]);
    const child = new Agent({
      name: "child",
      description: "Helps.",
      model: childModel,
      instructions: "Help.",
    });
    const lead = scriptedModel([{ toolCalls: [{ name: "child", input: { task: "a" } }] }, "one", "two"]);
    const boss = new Agent({ name: "boss", model: lead, tools: [child.asTool()] });
    const origin = await runtime.submit(boss, "go");
    await origin.result();
    const events = await readAll(store, origin.runId);
    const start = events.find(({ type, taskId }) => type === "message_start" && taskId === "t1");
    const fork = await origin.fork({
      at: start?.seq ?? 0,
      keepsCommit: true,
      taskId: "t1",
      instructions: "Help twice.",
      input: "briefly",
    });
    expect((await fork.result()).output).toBe("two");
    expect(textsOf(childModel.calls[1]).slice(0, 1)).toEqual(["Help twice."]);
    expect(textsOf(childModel.calls[1]).at(-1)).toBe("briefly");
    expect(JSON.stringify(lead.calls[2]?.messages)).toContain("child two");
    expect((await forkEvent(store, fork)).data.changedTask).toBe("t1");
  });
});
