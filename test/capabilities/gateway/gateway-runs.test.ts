import { expect, test } from "vitest";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { Gateway } from "../../../src/capabilities/gateway/gateway.ts";
import { gatewayAgent, GatewayRuns } from "../../../src/capabilities/gateway/gateway-runs.ts";
import { GatewayTokens } from "../../../src/capabilities/gateway/gateway-tokens.ts";
import {
  formatAgentId,
  formatRunId,
  type Event,
  type JsonObject,
  type JsonValue,
  type MeteredCall,
  type MeteredResult,
  type OnBudget,
  type RunHandle,
  type RunRecord,
  type Runtime,
  type Store,
} from "../../../src/kernel/index.ts";
import { openStore } from "../../../src/runtime/index.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { opened, post } from "./gateway-world.ts";
import { answerJson, MockUpstream } from "./mock-upstream.ts";

interface Served {
  readonly run: RunHandle;
  readonly tokens: GatewayTokens;
  readonly gateway: Gateway;
  readonly runs: GatewayRuns;
  readonly upstream: MockUpstream;
  readonly token: string;
  readonly clock: FakeClock;
  readonly store: Store;
  readonly runtime: Runtime;
  readonly ask: (model?: string, path?: string) => Promise<Response>;
}

interface ServedOptions {
  readonly maxCostUsd?: number;
  readonly perDayUsd?: number | null;
  readonly expiresAt?: number | null;
  readonly models?: readonly string[] | null;
  readonly wire?: "anthropic" | "openai" | "gemini" | null;
  readonly per?: "day" | "month";
  readonly onBudget?: OnBudget;
  readonly topUpWaitMs?: number;
  readonly perHistory?: number;
  readonly concurrency?: number;
}

/** A gateway run on a store in memory, with a new history after `perHistory` requests. */
async function served({
  maxCostUsd = 1,
  perDayUsd = null,
  expiresAt = null,
  models = null,
  wire = null,
  per,
  onBudget = "end",
  topUpWaitMs = 60_000,
  perHistory = 3,
  concurrency = 64,
}: ServedOptions = {}): Promise<Served> {
  const upstream = await MockUpstream.open(({ path }, response) =>
    answerJson(
      response,
      path.endsWith("count_tokens") ? { input_tokens: 1 } : { usage: { input_tokens: 1, output_tokens: 10 } },
    ),
  );
  opened.push(upstream);
  const store = await openStore("memory:");
  const clock = new FakeClock(Date.parse("2026-11-30T23:59:00Z"));
  const runtime = await openRuntime({
    store,
    ...(per !== undefined && { clock }),
    prices: { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) },
    caps: { perDayUsd },
    concurrency,
  });
  opened.push(runtime);
  const tokens = new GatewayTokens(store.records);
  const runs = new GatewayRuns(tokens, runtime, perHistory);
  const provider = { baseUrl: upstream.url, apiKey: "secret-key" };
  const gateway = await Gateway.open(
    { upstreams: { anthropic: provider, openai: provider, gemini: provider }, topUpWaitMs },
    { stored: runs },
  );
  opened.push(gateway, runs);
  runtime.register(runs.resolver);
  const runId = formatRunId("bot");
  const token = await tokens.create(runId);
  const metadata = { gateway: "bot", maxBudgetUsd: maxCostUsd, ...(per !== undefined && { per }) };
  const { id } = gatewayAgent("bot");
  const agent = await runs.resolver.resolve({ agentId: id, metadata: metadata as JsonObject } as RunRecord);
  if (agent === undefined) throw new Error("the resolver made no agent");
  const run = await runtime.submit(
    { ...agent, onBudget },
    { models, wire, expiresAt, served: 0 },
    { runId, metadata, ...(per === undefined && { budget: { maxCostUsd } }) },
  );
  await started(run, 1);
  return {
    run,
    tokens,
    gateway,
    runs,
    upstream,
    token,
    clock,
    store,
    runtime,
    ask: (model = "m", path = "/v1/messages") =>
      post({ url: gateway.url, token }, { path, body: { model, max_tokens: 10 } }),
  };
}

/** Resolves when the log has this number of attempts. */
async function started(run: RunHandle, count: number): Promise<void> {
  let found = 0;
  for await (const event of run.events()) if (event.type === "attempt_start" && ++found === count) return;
}

/** Resolves with the id of the question in which the run asks for its first top-up. */
async function questionOf(run: RunHandle): Promise<string> {
  for await (const event of run.events({ types: ["approval_request"] }))
    if (event.type === "approval_request" && event.data.kind === "top_up") return event.data.approvalId;
  throw new Error("the run asked for no top-up");
}

async function eventsOf(run: RunHandle): Promise<readonly Event[]> {
  const events: Event[] = [];
  for await (const event of run.events({ follow: false })) if ("seq" in event) events.push(event);
  return events;
}

test("J8: a gateway run begins a new history after a number of requests, and loses no request that arrives meanwhile", async () => {
  const { run, ask } = await served();
  const statuses: number[] = [];
  for (let round = 0; round < 5; round++)
    statuses.push(...(await Promise.all(Array.from({ length: 4 }, async () => (await ask()).status))));
  expect(statuses).toEqual(Array.from({ length: 20 }, () => 200));
  const events = await eventsOf(run);
  expect(events.filter(({ type }) => type === "task_continue_as_new").length).toBeGreaterThan(2);
  expect(events.filter(({ type }) => type === "metered_call").length).toBe(20);
  expect((await run.summary()).costUsd).toBeCloseTo(0.2, 9);
});

test("B1: a gateway run answers 402 at its budget, and serves its token again after a top-up", async () => {
  const { run, ask, upstream } = await served({ maxCostUsd: 0.015 });
  expect([(await ask()).status, (await ask()).status]).toEqual([200, 200]);
  const refused = await ask();
  expect([refused.status, refused.headers.get("x-should-retry")]).toEqual([402, "false"]);
  expect(await run.result()).toMatchObject({ status: "budget_exhausted" });
  const later = await ask();
  expect(later.status).toBe(402);
  expect(JSON.stringify(await later.json())).toContain("reeve top-up run_bot");
  await run.topUp({ maxCostUsd: 0.01 });
  await started(run, 2);
  expect((await ask()).status).toBe(200);
  expect(upstream.received.filter(({ path }) => path === "/v1/messages").length).toBe(3);
});

test("a cap per day refuses the requests of a gateway run and does not end it", async () => {
  const { run, ask } = await served({ perDayUsd: 0.01 });
  expect((await ask()).status).toBe(200);
  const refused = await ask();
  expect([refused.status, await refused.text()]).toEqual([
    402,
    expect.stringContaining("cannot be topped up"),
  ]);
  expect((await run.summary()).status).toBe("running");
});

test("B7: a daily or monthly budget of a gateway run renews with the period, and neither ends the run nor counts others", async () => {
  for (const per of ["day", "month"] as const) {
    const { run, ask, clock, store } = await served({ maxCostUsd: 0.02, per });
    expect([(await ask()).status, (await ask()).status]).toEqual([200, 200]);
    const refused = await ask();
    expect([refused.status, await refused.text()]).toEqual([
      402,
      expect.stringContaining("it resets at 2026-12-01T00:00:00.000Z"),
    ]);
    await clock.advance(60_000);
    expect([(await ask()).status, (await run.summary()).status]).toEqual([200, "running"]);
    const totals = await store.usage.sum({ by: "agent", from: "2026-11-01", to: "2026-12-31" });
    expect(totals.map(({ key }) => key)).toEqual(["reeve:gateway/bot"]);
  }
});

test("B5: a gateway run with onBudget ask holds a request until the top-up, and serves others while the question is open", async () => {
  const { run, ask, upstream } = await served({
    maxCostUsd: 0.02,
    onBudget: "ask",
    topUpWaitMs: 0,
    perHistory: 9,
  });
  expect([(await ask()).status, (await ask()).status]).toEqual([200, 200]);
  const refused = await ask();
  expect([refused.status, await refused.text()]).toEqual([
    402,
    expect.stringContaining("a person was asked"),
  ]);
  await questionOf(run);
  await run.topUp({ maxCostUsd: 0.01 });
  while ((await ask()).status !== 200) expect((await run.summary()).endedAt).toBe(null);
  expect(upstream.received.filter(({ path }) => path === "/v1/messages").length).toBe(3);
  const events = await eventsOf(run);
  expect(events.filter(({ type }) => type === "attempt_start").length).toBe(1);
});

test("B5: a gateway run whose top-up is refused ends as budget_exhausted", async () => {
  const { run, ask } = await served({ maxCostUsd: 0.01, onBudget: "ask" });
  expect((await ask()).status).toBe(200);
  const held = ask();
  await run.approve(await questionOf(run), { decision: "denied" });
  expect((await held).status).toBe(402);
  expect(await run.result()).toMatchObject({ status: "budget_exhausted" });
});

test("a gateway token for one provider's protocol is refused by other protocols in their own error shape", async () => {
  const { ask, upstream } = await served({ wire: "anthropic" });
  expect((await ask()).status).toBe(200);
  const chat = await ask("m", "/v1/chat/completions");
  expect([chat.status, await chat.json()]).toEqual([
    403,
    {
      error: expect.objectContaining({
        message: expect.stringContaining("wire anthropic") as string,
      }) as object,
    },
  ]);
  const gemini = await ask("m", "/v1beta/models/m:generateContent");
  expect([gemini.status, await gemini.json()]).toMatchObject([403, { error: { code: 403 } }]);
  expect(upstream.received.length).toBe(1);
});

test("a gateway run refuses models that its input does not name, and lists only the named ones", async () => {
  const { gateway, ask, token } = await served({ models: ["m", "n"] });
  expect([(await ask("m")).status, (await ask("x")).status]).toEqual([200, 403]);
  const reply = await fetch(`${gateway.url}/v1/models`, {
    headers: { "x-reeve-token": token, "anthropic-version": "1" },
  });
  expect(await reply.json()).toMatchObject({ data: [] });
});

test("a gateway run that has expired is completed, and its token is refused", async () => {
  const { run, ask } = await served({ expiresAt: Date.now() + 1 });
  expect(await run.result()).toMatchObject({ status: "completed", output: { reason: "expired" } });
  expect((await ask()).status).toBe(401);
});

test("a revoked gateway token is refused at once, and other tokens of the run stay valid", async () => {
  const { run, tokens, gateway, token } = await served();
  const second = await tokens.create(run.runId);
  const statusOf = async (text: string): Promise<number> =>
    (await fetch(`${gateway.url}/v1/models`, { headers: { "x-reeve-token": text } })).status;
  expect([await statusOf(token), await statusOf(second)]).toEqual([200, 200]);
  await tokens.revoke(run.runId, second);
  expect([await statusOf(token), await statusOf(second)]).toEqual([200, 401]);
});

test("a program that leaves while its gateway request waits for money pays nothing, and nothing is sent", async () => {
  const { gateway, upstream } = await served();
  const waiting = Promise.withResolvers<(call: MeteredCall) => Promise<MeteredResult<JsonValue>>>();
  const access = gateway.admit({
    signal: new AbortController().signal,
    emitEvent: () => undefined,
    metered: (_request, body) => {
      waiting.resolve(body);
      return new Promise(() => undefined);
    },
  });
  const leaving = new AbortController();
  const asked = fetch(`${access.url}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": access.token },
    body: JSON.stringify({ model: "m", max_tokens: 10 }),
    signal: leaving.signal,
  });
  const perform = await waiting.promise;
  access.close();
  leaving.abort();
  await expect(asked).rejects.toThrow("aborted");
  const granted = { outputLimit: 10, isClamped: false, signal: leaving.signal, report: () => undefined };
  expect(await perform(granted)).toEqual({ value: null, usage: null });
  expect(upstream.received).toEqual([]);
});

test("a gateway run without an open request leaves its slot to other runs", async () => {
  const { ask, runtime } = await served({ concurrency: 1 });
  expect((await ask()).status).toBe(200);
  const other = { id: formatAgentId({ name: "other" }), run: async () => "done" };
  expect((await (await runtime.submit(other, null)).result()).output).toBe("done");
  expect((await ask()).status).toBe(200);
});

test("each token of a gateway run has its own number of open requests", async () => {
  const { run, tokens, gateway, token, upstream } = await served({ perHistory: 200 });
  const second = await tokens.create(run.runId);
  const answer = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  let requests = 0;
  upstream.answer = async (_received, response) => {
    if (++requests === 51) arrived.resolve();
    await answer.promise;
    answerJson(response, { usage: { input_tokens: 1, output_tokens: 1 } });
  };
  const ask = async (text: string): Promise<number> =>
    (
      await post(
        { url: gateway.url, token: text },
        { path: "/v1/messages", body: { model: "m", max_tokens: 1 } },
      )
    ).status;
  const open = Array.from({ length: 50 }, () => ask(token));
  const other = ask(second);
  await arrived.promise;
  expect(await ask(token)).toBe(429);
  answer.resolve();
  expect(new Set(await Promise.all([...open, other]))).toEqual(new Set([200]));
});

test("the gateway token of a cancelled run is refused", async () => {
  const { run, ask } = await served();
  await run.cancel("no longer needed");
  expect((await run.result()).status).toBe("cancelled");
  expect((await ask()).status).toBe(401);
});

test("a gateway process that stops lets open requests end, and leaves the run to the next process", async () => {
  const { run, runs, ask, upstream } = await served();
  const arrived = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  upstream.answer = async (_received, response) => {
    arrived.resolve();
    await answer.promise;
    answerJson(response, { usage: { input_tokens: 1, output_tokens: 10 } });
  };
  const asked = ask();
  await arrived.promise;
  const closing = runs.close();
  expect((await ask()).status).toBe(503);
  answer.resolve();
  expect((await asked).status).toBe(200);
  await closing;
  expect((await run.summary()).status).toBe("running");
});
