import { expect, it } from "vitest";
import {
  messageText,
  Transcript,
  userMessage,
  type Commit,
  type Delta,
  type Event,
  type LlmRequest,
  type RunContext,
} from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { agent, setUp, settle } from "../runtime-setup.ts";

const price = { find: () => ({ inputUsd: 1e-6, outputUsd: 1e-6 }) };
const request: LlmRequest = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 100 };

function modelCaller(script: readonly ScriptStep[], calls = 1) {
  const model = scriptedModel(script);
  const code = async (ctx: RunContext) => {
    let last = "";
    for (let call = 0; call < calls; call++) last = (await ctx.llm(request)).stopReason;
    return last;
  };
  return { model, worker: agent("caller", code, { models: { main: model } }) };
}

function httpError(status: number, headers: Record<string, string> = {}): Error {
  return Object.assign(new Error(`status ${status}`), { status, headers });
}

function ofType<Type extends Event["type"]>(events: readonly Event[], type: Type): Event<Type>[] {
  return events.filter((event) => event.type === type) as Event<Type>[];
}

it("J5: a retryable failure of a model is retried inside the step after the delay, and not before Retry-After", async () => {
  const { runtime, clock, events } = await setUp({ retry: { baseDelayMs: 1_000 }, prices: price });
  const { model, worker } = modelCaller([
    { error: httpError(503) },
    { error: httpError(429, { "retry-after": "7" }) },
    "hello",
  ]);
  const run = await runtime.submit(worker, null);
  await settle();
  await clock.advance(999);
  expect(model.calls).toHaveLength(1);
  await clock.advance(1);
  expect(model.calls).toHaveLength(2);
  await clock.advance(6_999);
  expect(model.calls).toHaveLength(2);
  await clock.advance(1);
  expect((await run.result()).output).toBe("stop");
  const log = await events(run.runId);
  expect(ofType(log, "retry_start").map(({ data }) => data.delayMs)).toEqual([1_000, 7_000]);
  expect(ofType(log, "retry_end").map(({ data }) => data.success)).toEqual([false, true]);
  expect(ofType(log, "message_start")).toHaveLength(1);
});

it("J5: a model failure that is not retryable fails the run after one attempt", async () => {
  const { runtime } = await setUp();
  const { model, worker } = modelCaller([{ error: httpError(401) }, "unused"]);
  const { status, error: failure } = await (await runtime.submit(worker, null)).result();
  expect({ status, code: failure?.code, calls: model.calls.length }).toEqual({
    status: "failed",
    code: "model_auth",
    calls: 1,
  });
});

it("an API key that a provider quotes in an error appears in no result, event or journal record", async () => {
  const { runtime, clock, events, store } = await setUp({ retry: { baseDelayMs: 1, maxRetries: 1 } });
  const key = "sk-proj-4f9Ab3kQ2mZ8xY7wV6uT5sR4";
  const error = Object.assign(new Error(`overloaded for ${key}`), { status: 503 });
  const { worker } = modelCaller([{ error }, { error }]);
  const run = await runtime.submit(worker, null);
  await settle();
  await clock.advance(1_000);
  const result = await run.result();
  expect(result.error?.message).toBe("scripted/script failed with HTTP 503: overloaded for [secret]");
  const commits: Commit[] = [];
  for await (const commit of store.journal.read(run.runId)) commits.push(commit);
  for (const stored of [result, await events(run.runId), commits])
    expect(JSON.stringify(stored)).not.toContain(key);
});

it("B3: a model attempt without reported usage is charged in full, and one refused before any body is free", async () => {
  const { runtime, clock, events } = await setUp({ prices: price, retry: { baseDelayMs: 1 } });
  const usage = { inputTokens: 10, outputTokens: 5 };
  const { worker } = modelCaller([
    { error: httpError(503) },
    { error: new Error("socket hang up") },
    { text: "hello", usage },
  ]);
  const run = await runtime.submit(worker, null, { budget: { maxCostUsd: 1 } });
  await settle();
  await clock.advance(10);
  const { costUsd, turns } = await run.result();
  const [lost, ...more] = ofType(await events(run.runId), "budget_lost");
  expect(more).toEqual([]);
  expect(lost?.data.tokens).toBeGreaterThan(100);
  expect(costUsd).toBeCloseTo((lost?.data.costUsd ?? 0) + 15e-6, 9);
  expect(turns).toBe(1);
});

it("B3: an error inside a model response with a success status is charged, and one with an error status is free", async () => {
  const { runtime, clock, events } = await setUp({ prices: price, retry: { baseDelayMs: 1 } });
  const inside = { error: { code: 429, message: "slow down" } };
  const { worker } = modelCaller([
    { error: Object.assign(new Error("slow down"), { statusCode: 200, data: inside }) },
    { error: inside },
    { error: httpError(429) },
    { text: "hello" },
  ]);
  const run = await runtime.submit(worker, null, { budget: { maxCostUsd: 1 } });
  await settle();
  for (let retry = 0; retry < 3; retry++) await clock.advance(100);
  expect((await run.result()).status).toBe("completed");
  const lost = ofType(await events(run.runId), "budget_lost").map(({ data }) => data.attempt);
  expect(lost).toEqual([1, 2]);
});

it.each([
  ["with the status 401", httpError(401)],
  ["inside a response with a success status", { error: { code: 401, message: "No auth credentials found" } }],
  [
    "before it is sent, because the key is missing",
    Object.assign(new Error("no key"), { name: "AI_LoadAPIKeyError" }),
  ],
])(
  "B3: a model request that is refused %s is not an unreported call and costs nothing",
  async (_name, error) => {
    const { runtime, events } = await setUp({ prices: price });
    const { worker } = modelCaller([{ error }]);
    const run = await runtime.submit(worker, null, { budget: { maxCostUsd: 1 } });
    const { error: failure, costUsd, unreported } = await run.result();
    expect([failure?.code, costUsd, unreported]).toEqual(["model_auth", 0, { tokens: 0, costUsd: 0 }]);
    expect(ofType(await events(run.runId), "budget_lost")).toEqual([]);
  },
);

it("E2: text deltas carry offsets and are reset for a new attempt, and a cut stream is retried", async () => {
  const { runtime, clock } = await setUp({ retry: { baseDelayMs: 10 } });
  const { worker } = modelCaller([{ deltas: ["he", "l"], cut: true }, { deltas: ["hel", "lo"] }]);
  const run = await runtime.submit(worker, null, { streaming: true });
  const deltas: Delta[] = [];
  const reading = (async () => {
    for await (const each of run.events()) if (!("seq" in each)) deltas.push(each);
  })();
  await settle();
  await clock.advance(10);
  await reading;
  const received = deltas.map((delta) =>
    delta.type === "message_update" ? `${delta.attempt}@${delta.offset} ${delta.text}` : delta.type,
  );
  expect(received.slice(0, 3)).toEqual(["1@0 he", "1@2 l", "message_reset"]);
  expect((await run.result()).status).toBe("completed");
});

it("B1: output cut at a limit that the budget lowered ends the run as budget_exhausted", async () => {
  const { runtime, events } = await setUp();
  const { worker } = modelCaller([
    { text: "cut", stopReason: "length", usage: { inputTokens: 20, outputTokens: 12 } },
  ]);
  const run = await runtime.submit(worker, null, { budget: { maxTokens: 90 } });
  const { status, error: failure } = await run.result();
  expect({ status, dimension: failure?.details?.["dimension"] }).toEqual({
    status: "budget_exhausted",
    dimension: "tokens",
  });
  expect(ofType(await events(run.runId), "message_end")).toHaveLength(1);
});

it("B4: a model without a known price is not called under a budget in dollars", async () => {
  const { runtime } = await setUp();
  const { model, worker } = modelCaller(["unused"]);
  const { error: failure } = await (
    await runtime.submit(worker, null, { budget: { maxCostUsd: 1 } })
  ).result();
  expect({ code: failure?.code, calls: model.calls.length }).toEqual({ code: "unknown_price", calls: 0 });
});

it("B5, J5: a run warns before its cap, stops at the cap, and resumes after topUp() without paying again", async () => {
  const { runtime, events } = await setUp();
  const usage = { inputTokens: 40, outputTokens: 10 };
  const { model, worker } = modelCaller(
    Array.from({ length: 4 }, () => ({ text: "hm", usage })),
    4,
  );
  const run = await runtime.submit(worker, null, { budget: { maxTurns: 2 } });
  const stopped = await run.result();
  expect(stopped.status).toBe("budget_exhausted");
  expect(model.calls).toHaveLength(2);
  const log = await events(run.runId);
  expect(ofType(log, "budget_warning").map(({ data }) => data.dimension)).toContain("turns");
  await run.topUp({ maxTurns: 2 });
  const { status, turns } = await run.result();
  expect({ status, turns, calls: model.calls.length }).toEqual({ status: "completed", turns: 4, calls: 4 });
});

it("B1, B6: turns of children count against their parent's cap, and a waiting reservation is served when another settles", async () => {
  const { runtime } = await setUp();
  const usage = { inputTokens: 10, outputTokens: 10 };
  const model = scriptedModel(Array.from({ length: 9 }, () => ({ text: "hm", usage })));
  const child = agent("child", async (ctx) => (await ctx.llm(request)).stopReason, {
    models: { main: model },
  });
  const parent = agent(
    "parent",
    async (ctx) => {
      const handles = [];
      for (const input of [1, 2, 3]) {
        const spawned = await ctx.spawn(child.id, input);
        if (spawned.kind === "spawned") handles.push(spawned.handle);
      }
      return (await ctx.joinAll(handles)).map(({ status, failure }) => failure?.code ?? status);
    },
    { subAgents: [child] },
  );
  // The budget fits one call at a time. Each settled call leaves room for the next.
  const tokens = await (await runtime.submit(parent, null, { budget: { maxTokens: 240 } })).result();
  expect(tokens.output).toEqual(["completed", "completed", "completed"]);
  const turns = await (await runtime.submit(parent, null, { budget: { maxTurns: 2 } })).result();
  expect(turns.output).toEqual(["completed", "completed", "budget_exhausted"]);
});

it("J4, S4: ephemeral messages are sent to the model and not stored, and a failing source is recorded as hook_error", async () => {
  const { runtime, open, events, store } = await setUp({ prices: price, suspendAfterMs: 0 });
  let reads = 0;
  const browser = {
    name: "browser",
    messages: async () => [userMessage(`tab ${++reads}`)],
  };
  const desktop = {
    name: "desktop",
    messages: () => Promise.reject(new Error("no display")),
  };
  const model = scriptedModel(["one", "two"]);
  const worker = agent(
    "watcher",
    async (ctx) => {
      const ephemeral = [browser, desktop];
      const { message } = await ctx.llm({ ...request, ephemeral });
      await ctx.waitForSignal("go");
      const transcript = request.transcript.append(message);
      return JSON.stringify((await ctx.llm({ ...request, transcript, ephemeral })).message.content);
    },
    { models: { main: model } },
  );
  const run = await runtime.submit(worker, null);
  await settle();
  await runtime.close();
  const second = await open({ store });
  second.register(worker);
  const handle = await second.find(run.runId);
  await handle?.signal("go");
  expect((await handle?.result())?.output).toContain("two");
  expect(reads).toBe(2);
  expect(model.calls.map(({ messages }) => messages.map((message) => messageText(message)))).toEqual([
    ["hello", "tab 1"],
    ["hello", "one", "tab 2"],
  ]);
  const log = await events(run.runId);
  expect(JSON.stringify(log)).not.toContain("tab 1");
  expect(ofType(log, "hook_error").map(({ data }) => data.hook)).toEqual(["desktop", "desktop"]);
});
