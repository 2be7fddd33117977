import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fallback } from "../../src/capabilities/index.ts";
import {
  formatAgentId,
  Transcript,
  userMessage,
  type HostedAgent,
  type Event,
  type Model,
  type RunHandle,
} from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { memoryStore, sha256 } from "../../src/runtime/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { casesOf } from "../effort.ts";
import { mockProviders, providerKeys, usage, type MockProviders } from "./mock-providers.ts";

let providers: MockProviders;
beforeAll(async () => {
  providers = await mockProviders();
  providers.mock.on(
    { userMessage: /./u },
    { content: "Understood.", usage: usage(billed.input, billed.output) },
  );
  // With these rates a kind of fault occurs 30 to 50 times in 250 calls, so that chance does not fail the test.
  providers.mock.setChaos({ dropRate: 0.12, malformedRate: 0.12, rateLimitRate: 0.12, disconnectRate: 0.12 });
});
afterAll(() => providers.stop());

const billed = { input: 21, output: 4 };
const perCall = billed.input + billed.output;
const usdPerToken = 1e-6;
const calls = casesOf(1_000, 250);
const callsPerRun = 25;

function caller(name: string, model: Model): HostedAgent {
  return {
    id: formatAgentId({ name }),
    models: { main: model },
    budget: { maxTokens: 10_000_000, maxCostUsd: 100 },
    run: async (ctx) => {
      for (let call = 0; call < callsPerRun; call++)
        await ctx.llm({ transcript: Transcript.of([userMessage(`say ${call}`)]), maxOutputTokens: 64 });
      return "done";
    },
  };
}

/** Advances the fake clock while answers arrive over real sockets, so that waits of any length take no time. */
async function pump<Value>(clock: FakeClock, work: Promise<Value>): Promise<Value> {
  const over = new AbortController();
  const done = work.finally(() => over.abort());
  while (!over.signal.aborted) {
    await clock.advance(5_000);
    await setImmediate();
  }
  return done;
}

async function eventsOf(run: RunHandle): Promise<readonly Event[]> {
  const events: Event[] = [];
  for await (const event of run.events()) if ("seq" in event) events.push(event);
  return events;
}

test(`B1, B3: the ledger is exact after ${calls} model calls through servers that drop, garble, refuse and disconnect`, async () => {
  const clock = new FakeClock();
  const runtime = await createRuntime({
    store: memoryStore({ hash: sha256 }),
    clock,
    prices: { find: () => ({ inputUsd: usdPerToken, outputUsd: usdPerToken }) },
    retry: { baseDelayMs: 0, maxRetries: 100 },
  });
  const agents = [
    ...providerKeys.map((key) => caller(key.replaceAll(" ", "-"), providers.models[key])),
    caller("fallback", fallback([providers.models.anthropic, providers.models.openai])),
  ];
  const runs: RunHandle[] = [];
  for (let index = 0; index < calls / callsPerRun; index++) {
    const agent = agents[index % agents.length];
    if (agent !== undefined) runs.push(await runtime.submit(agent, null, { streaming: index % 2 === 0 }));
  }
  const results = await pump(clock, Promise.all(runs.map((run) => run.result())));
  const events = (await Promise.all(runs.map(eventsOf))).flat();
  await runtime.close();

  expect(results.map(({ status }) => status)).toEqual(results.map(() => "completed"));
  const served = providers.mock.getRequests().map(({ response }) => response.chaosAction ?? "answered");
  const count = (action: string): number => served.filter((each) => each === action).length;
  // Every kind of fault occurred, and each call was answered once.
  for (const action of ["drop", "malformed", "rateLimit", "disconnect"])
    expect(count(action)).toBeGreaterThan(10);
  expect(count("answered")).toBe(calls);
  // The spend equals what the servers billed; calls of unknown cost are reported and charged in full.
  const lost = events.flatMap((event) => (event.type === "budget_lost" ? [event.data.tokens] : []));
  expect(lost).toHaveLength(count("malformed") + count("disconnect"));
  const lostTokens = lost.reduce((sum, tokens) => sum + tokens, 0);
  const tokens = results.reduce((sum, { usage: used }) => sum + used.inputTokens + used.outputTokens, 0);
  const costUsd = results.reduce((sum, result) => sum + (result.costUsd ?? Number.NaN), 0);
  expect(tokens).toBe(calls * perCall);
  expect(Math.round(costUsd / usdPerToken)).toBe(calls * perCall + lostTokens);
  expect(results.reduce((sum, { turns }) => sum + turns, 0)).toBe(calls);
});
