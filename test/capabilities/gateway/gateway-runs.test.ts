import { expect, test } from "vitest";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { Gateway } from "../../../src/capabilities/gateway/gateway.ts";
import { gatewayAgent, GatewayRuns } from "../../../src/capabilities/gateway/gateway-runs.ts";
import { GatewayTokens } from "../../../src/capabilities/gateway/gateway-tokens.ts";
import {
  formatRunId,
  type Event,
  type JsonValue,
  type MeteredCall,
  type MeteredResult,
  type RunHandle,
  type RunRecord,
} from "../../../src/kernel/index.ts";
import { openStore } from "../../../src/runtime/index.ts";
import { opened, post } from "./gateway-world.ts";
import { answerJson, MockUpstream } from "./mock-upstream.ts";

interface Served {
  readonly run: RunHandle;
  readonly tokens: GatewayTokens;
  readonly gateway: Gateway;
  readonly runs: GatewayRuns;
  readonly upstream: MockUpstream;
  readonly token: string;
  readonly ask: (model?: string) => Promise<Response>;
}

/** A gateway run on a store in memory, with a new history after three requests. */
async function served({
  maxCostUsd = 1,
  perDayUsd = null as number | null,
  expiresAt = null as number | null,
  models = null as string[] | null,
} = {}): Promise<Served> {
  const upstream = await MockUpstream.open(({ path }, response) =>
    answerJson(
      response,
      path.endsWith("count_tokens") ? { input_tokens: 1 } : { usage: { input_tokens: 1, output_tokens: 10 } },
    ),
  );
  opened.push(upstream);
  const store = await openStore("memory:");
  const runtime = await openRuntime({
    store,
    prices: { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) },
    caps: { perDayUsd },
  });
  opened.push(runtime);
  const tokens = new GatewayTokens(store.records);
  const runs = new GatewayRuns(tokens, runtime, 3);
  const provider = { baseUrl: upstream.url, apiKey: "secret-key" };
  const gateway = await Gateway.open(
    { upstreams: { anthropic: provider, openai: provider } },
    { stored: runs },
  );
  opened.push(gateway, runs);
  runtime.register(runs.resolver);
  const runId = formatRunId("bot");
  const token = await tokens.create(runId);
  const agent = await runs.resolver.resolve({ agentId: gatewayAgent("bot").id } as RunRecord);
  if (agent === undefined) throw new Error("the resolver made no agent");
  const run = await runtime.submit(
    agent,
    { models, expiresAt, served: 0 },
    { runId, budget: { maxCostUsd } },
  );
  await started(run, 1);
  return {
    run,
    tokens,
    gateway,
    runs,
    upstream,
    token,
    ask: (model = "m") =>
      post({ url: gateway.url, token }, { path: "/v1/messages", body: { model, max_tokens: 10 } }),
  };
}

/** Resolves when the log has this number of attempts. */
async function started(run: RunHandle, count: number): Promise<void> {
  let found = 0;
  for await (const event of run.events()) if (event.type === "attempt_start" && ++found === count) return;
}

async function eventsOf(run: RunHandle): Promise<readonly Event[]> {
  const events: Event[] = [];
  for await (const event of run.events({ follow: false })) if ("seq" in event) events.push(event);
  return events;
}

test("J8: a gateway run begins a new history after its number of requests, and loses none that arrive meanwhile", async () => {
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

test("B1: a gateway run stops at its budget with 402, and serves its token again after a top-up", async () => {
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

test("a gateway run refuses other models than those of its input, and lists only them", async () => {
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

test("a revoked token is refused at once, and other tokens of the run stay valid", async () => {
  const { run, tokens, gateway, token } = await served();
  const second = await tokens.create(run.runId);
  const statusOf = async (text: string): Promise<number> =>
    (await fetch(`${gateway.url}/v1/models`, { headers: { "x-reeve-token": text } })).status;
  expect([await statusOf(token), await statusOf(second)]).toEqual([200, 200]);
  await tokens.revoke(run.runId, second);
  expect([await statusOf(token), await statusOf(second)]).toEqual([200, 401]);
});

test("a program that leaves while its request waits for money pays nothing, and nothing is sent", async () => {
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

test("the token of a cancelled run is refused", async () => {
  const { run, ask } = await served();
  await run.cancel("no longer needed");
  await run.result();
  expect((await ask()).status).toBe(401);
});

test("a process that stops lets open requests end, and leaves the run to the next one", async () => {
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
