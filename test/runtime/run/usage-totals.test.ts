import { describe, expect, it, test } from "vitest";
import {
  latencyBucket,
  Transcript,
  userMessage,
  type HostedAgent,
  type Model,
  type PriceTable,
  type RunContext,
  type RunHandle,
  type Runtime,
  type Store,
  type UsageQuery,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import type { RuntimeOptions } from "../../../src/runtime/index.ts";
import { FakeClock, scriptedModel } from "../../../src/testing/index.ts";
import { agent, readAll, settle, spawnTask, until } from "../runtime-setup.ts";
import { runWorkload } from "../simulated-crash.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const prices: PriceTable = { find: () => ({ inputUsd: 1e-6, outputUsd: 4e-6, cacheReadUsd: 1e-6 }) };
const request = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 20 };
const usage = { inputTokens: 40, outputTokens: 10, cacheReadTokens: 30 };
/** The cost of one call. */
const callUsd = 80e-6;
/** The day of a new `FakeClock`. Its time is 22:13. */
const day = "2023-11-14";

function model(calls: number, modelId = "m"): Model {
  return scriptedModel(
    Array.from({ length: calls }, () => ({ text: "hm", usage })),
    { provider: "acme", modelId },
  );
}

/** An agent that calls its model, waits for the signal `go` and calls its model again. */
function waiter(): HostedAgent {
  const code = async (ctx: RunContext): Promise<string> => {
    await ctx.llm(request);
    await ctx.waitForSignal("go");
    await ctx.llm(request);
    return "done";
  };
  return agent("waiter", code, { models: { main: model(2) } });
}

function caller(name: string, calls = 1): HostedAgent {
  const code = async (ctx: RunContext): Promise<string> => {
    for (let call = 0; call < calls; call++) await ctx.llm(request);
    return "done";
  };
  return agent(name, code, { models: { main: model(calls + 2) } });
}

async function openOn(store: Store, clock: FakeClock, more: RuntimeOptions = {}): Promise<Runtime> {
  return createRuntime({ store, clock, prices, pollMs: 10, ...more });
}

/** Runs, turns and cost per row. */
async function rows(runtime: Runtime, query: UsageQuery): Promise<unknown[]> {
  const found = await runtime.usage(query);
  return found.map(({ key, runs, turns, costUsd }) => [key, runs, turns, costUsd]);
}

async function isWaiting(runtime: Runtime, run: RunHandle): Promise<boolean> {
  const { runs } = await runtime.list();
  return runs.some(({ runId, status }) => runId === run.runId && status === "waiting");
}

describe.each(twoStores)("usage totals in a %s store", (_name, prepare) => {
  it("U1: usage() returns the tokens, turns and cost of a run after its end, and nothing while it runs", async () => {
    const store = await (await prepare())();
    await using runtime = await openOn(store, new FakeClock());
    const inside: unknown[] = [];
    const code = async (ctx: RunContext): Promise<string> => {
      await ctx.llm(request);
      inside.push(...(await runtime.usage({ by: "day" })));
      return "done";
    };
    const clerk = agent("clerk", code, { models: { main: model(1) } });
    const result = await (await runtime.submit(clerk, null, { userId: "ann", tenantId: "acme" })).result();
    expect(inside).toEqual([]);
    expect(await runtime.usage({ by: "user" })).toEqual([
      {
        key: "ann",
        tenantId: "acme",
        runs: 1,
        turns: result.turns,
        inputTokens: 40,
        outputTokens: 10,
        cachedTokens: 30,
        costUsd: result.costUsd,
        unreported: { tokens: 0, costUsd: 0 },
        unpricedTurns: 0,
        details: expect.objectContaining({ runs: 1, failedRuns: 0, calls: 1, failedCalls: 0 }) as unknown,
      },
    ]);
    expect(result.costUsd).toBe(callUsd);
  });

  it("U1: a suspended run adds its usage, and after a restart only what is new", async () => {
    const reopen = await prepare();
    const clock = new FakeClock();
    const first = await openOn(await reopen(), clock);
    const run = await first.submit(waiter(), null);
    await until(() => isWaiting(first, run));
    expect(await rows(first, { by: "agent" })).toEqual([["waiter", 1, 1, callUsd]]);
    await first.close();
    await using second = await openOn(await reopen(), clock);
    second.register(waiter());
    const again = await second.find(run.runId);
    await again?.signal("go", null);
    expect(await again?.result()).toMatchObject({ status: "completed", turns: 2 });
    expect(await rows(second, { by: "agent" })).toEqual([["waiter", 1, 2, 2 * callUsd]]);
  });

  it("U1: a run that is resumed after its end counts once and adds only what is new", async () => {
    const store = await (await prepare())();
    await using runtime = await openOn(store, new FakeClock());
    const clerk = caller("clerk", 3);
    const run = await runtime.submit(clerk, null, { budget: { maxTurns: 1 } });
    expect((await run.result()).status).toBe("budget_exhausted");
    expect(await rows(runtime, { by: "day" })).toEqual([[day, 1, 1, callUsd]]);
    await run.topUp({ maxTurns: 5 });
    await until(async () => (await runtime.usage({ by: "day" }))[0]?.turns === 3);
    expect(await rows(runtime, { by: "day" })).toEqual([[day, 1, 3, 240e-6]]);
  });

  it("the usage totals count the calls of sub-agents for their agents and models, and the run for its root agent", async () => {
    const store = await (await prepare())();
    await using runtime = await openOn(store, new FakeClock());
    const worker = agent("worker", async (ctx) => void (await ctx.llm(request)), {
      models: { main: model(2, "small") },
    });
    const code = async (ctx: RunContext): Promise<string> => {
      for (let hire = 0; hire < 2; hire++) await ctx.join(await spawnTask(ctx, worker));
      await ctx.llm(request);
      return "done";
    };
    const lead = agent("lead", code, { models: { main: model(1, "large") }, subAgents: [worker] });
    await (await runtime.submit(lead, null)).result();
    expect(await rows(runtime, { by: "agent" })).toEqual([
      ["lead", 1, 1, callUsd],
      ["worker", 0, 2, 2 * callUsd],
    ]);
    expect(await rows(runtime, { by: "model" })).toEqual([
      ["acme/large", 1, 1, callUsd],
      ["acme/small", 0, 2, 2 * callUsd],
    ]);
  });

  it("the usage totals count a run without model calls in the row without a model", async () => {
    const store = await (await prepare())();
    await using runtime = await openOn(store, new FakeClock());
    await (
      await runtime.submit(
        agent("idler", async () => "done"),
        null,
      )
    ).result();
    expect(await rows(runtime, { by: "model" })).toEqual([[null, 1, 0, 0]]);
    expect(await rows(runtime, { by: "agent" })).toEqual([["idler", 1, 0, 0]]);
  });

  it("U2: usage() returns the same after the run was collected and the store was opened again", async () => {
    const reopen = await prepare();
    const clock = new FakeClock();
    const first = await openOn(await reopen(), clock);
    const run = await first.submit(caller("clerk"), null);
    await run.result();
    await clock.advance(1);
    await settle();
    expect(await first.collect({ endedBefore: clock.now() })).toBe(1);
    await first.close();
    await using second = await openOn(await reopen(), clock);
    expect(await second.find(run.runId)).toBeUndefined();
    expect(await rows(second, { by: "day" })).toEqual([[day, 1, 1, callUsd]]);
  });

  it("a fork adds only what it spends itself to the usage totals, not what it inherits", async () => {
    const store = await (await prepare())();
    await using runtime = await openOn(store, new FakeClock());
    const clerk = caller("clerk", 3);
    const run = await runtime.submit(clerk, null);
    await run.result();
    const replies = (await readAll(store, run.runId)).filter(({ type }) => type === "message_end");
    // The commit of the second reply has later events, so that the fork shares only the first reply.
    const fork = await run.fork({ at: replies[1]?.seq ?? -1 });
    expect(await fork.result()).toMatchObject({ status: "completed", turns: 2 });
    expect(await rows(runtime, { by: "agent" })).toEqual([["clerk", 2, 5, 5 * callUsd]]);
  });

  it("the usage totals count a call for the UTC day on which it was reserved, also if the run ends on the next day", async () => {
    const store = await (await prepare())();
    const clock = new FakeClock();
    await using runtime = await openOn(store, clock, { suspendAfterMs: 1e9, pollMs: 1e9 });
    const code = async (ctx: RunContext): Promise<string> => {
      await ctx.llm(request);
      await ctx.step("midnight", async () => {
        await clock.advance(2 * 3_600_000);
        return null;
      });
      await ctx.llm(request);
      return "done";
    };
    await (await runtime.submit(agent("clerk", code, { models: { main: model(2) } }), null)).result();
    expect(await rows(runtime, { by: "day" })).toEqual([
      [day, 1, 1, callUsd],
      ["2023-11-15", 0, 1, callUsd],
    ]);
  });

  it("U9: the usage totals count a call for the hour of its reservation with its duration, and a failure for the hour of the end", async () => {
    const store = await (await prepare())();
    const clock = new FakeClock();
    await using runtime = await openOn(store, clock, { suspendAfterMs: 1e9, pollMs: 1e9 });
    const slow = scriptedModel([{ text: "hm", usage, delayMs: 7_000 }], {
      clock,
      provider: "acme",
      modelId: "m",
    });
    const code = async (ctx: RunContext): Promise<string> => {
      await ctx.llm(request);
      await ctx.sleep(3_600_000);
      throw new Error("no way out");
    };
    const run = await runtime.submit(agent("clerk", code, { models: { main: slow } }), null);
    await until(async () => {
      await clock.advance(7_000);
      return (await runtime.list()).runs.every(({ endedAt }) => endedAt !== null);
    });
    expect((await run.result()).status).toBe("failed");
    const hours = await runtime.usage({ by: "hour" });
    expect(hours.map(({ key, runs, turns, details }) => [key, runs, turns, details?.failedRuns])).toEqual([
      [`${day}T22`, 1, 1, 0],
      [`${day}T23`, 0, 0, 1],
    ]);
    expect(hours[0]?.details?.latency[latencyBucket(7_000)]).toBe(1);
    // The failure belongs to the agent and the model for which the run counts.
    const [byModel] = await runtime.usage({ by: "model" });
    expect([byModel?.key, byModel?.details?.failedRuns]).toEqual(["acme/m", 1]);
  });

  it("U9: the usage totals count each failed attempt of a call, and no failure for a call that was cancelled", async () => {
    const store = await (await prepare())();
    const clock = new FakeClock();
    await using runtime = await openOn(store, clock);
    const cut = new Error("the connection was cut");
    const refusal = Object.assign(new Error("overloaded"), { statusCode: 529 });
    const flaky = scriptedModel([{ error: refusal }, { error: cut }, { text: "hm", usage }], {
      provider: "acme",
      modelId: "m",
    });
    const code = async (ctx: RunContext): Promise<string> => {
      await ctx.llm(request);
      return "done";
    };
    const retry = { baseDelayMs: 0 };
    await runtime.submit(agent("clerk", code, { models: { main: flaky }, retry }), null);
    await until(async () => {
      await clock.advance(60_000);
      return (await runtime.list()).runs.every(({ endedAt }) => endedAt !== null);
    });
    const [row] = await runtime.usage({ by: "day" });
    expect(row).toMatchObject({ turns: 1, details: { calls: 1, failedCalls: 2, failedRuns: 0 } });
    const stuck: Model = {
      ...model(1),
      generate: (_request, options) =>
        new Promise((_resolve, reject) => {
          options?.signal?.addEventListener("abort", () => reject(new Error("aborted")));
        }),
    };
    const second = await runtime.submit(agent("stuck", code, { models: { main: stuck } }), null);
    await until(async () =>
      (await readAll(store, second.runId)).some(({ type }) => type === "turn_start" || type === "run_start"),
    );
    await second.cancel("enough");
    expect((await second.result()).status).toBe("cancelled");
    const stopped = await runtime.usage({ by: "agent", agent: "stuck" });
    expect(stopped.map(({ details }) => [details?.failedCalls, details?.failedRuns])).toEqual([[0, 0]]);
  });

  it("U6: usage() refuses an unknown dimension and fails with closed after close()", async () => {
    const store = await (await prepare())();
    const runtime = await openOn(store, new FakeClock());
    const wrong = { by: "week" } as unknown as UsageQuery;
    await expect(runtime.usage(wrong)).rejects.toMatchObject({ code: "invalid_argument" });
    await runtime.close();
    await expect(runtime.usage({ by: "day" })).rejects.toMatchObject({ code: "closed" });
  });
});

test("the usage totals count calls of a model without a known price in unpricedTurns, not as a cost of zero", async () => {
  await using runtime = await createRuntime({ clock: new FakeClock() });
  await (await runtime.submit(caller("clerk", 2), null)).result();
  expect(await runtime.usage({ by: "model" })).toMatchObject([{ turns: 2, costUsd: 0, unpricedTurns: 2 }]);
});

test("U1, B3: after a kill at any write, the usage totals hold what the run spent, with the call in flight as unreported", async () => {
  const calls = 3;
  const work = { agents: () => [caller("clerk", calls)] as const, options: { prices } };
  const { writes } = await runWorkload(work);
  expect(writes).toBeGreaterThan(calls);
  const unreported: number[] = [];
  // Write 1 registers the worker.
  for (let at = 2; at <= writes; at++) {
    for (const when of ["before", "after"] as const) {
      const { costUsd, totals, hours } = await runWorkload(work, { at, when });
      const [row] = totals;
      const details = { runs: 1, failedRuns: 0, calls };
      expect(hours, `hours, ${when} write ${at}`).toMatchObject([
        { runs: 1, turns: calls, costUsd, details },
      ]);
      expect(row, `${when} write ${at}`).toMatchObject({ runs: 1, turns: calls, costUsd });
      unreported.push(row?.unreported.tokens ?? 0);
    }
  }
  expect(unreported.some((tokens) => tokens > 0)).toBe(true);
});
