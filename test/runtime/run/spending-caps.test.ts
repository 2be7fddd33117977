import { describe, expect, it, test } from "vitest";
import {
  agentNameOf,
  formatAgentId,
  Transcript,
  userMessage,
  type HostedAgent,
  type Model,
  type PriceTable,
  type RunContext,
  type Runtime,
  type SpendingCaps,
  type Store,
  type SubmitOptions,
  type UsageQuery,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { FakeClock, scriptedModel } from "../../../src/testing/index.ts";
import { ownRun } from "../../../src/testing/contracts/store-fixtures.ts";
import { agent, gate, until } from "../runtime-setup.ts";
import { runWorkload } from "../simulated-crash.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const prices: PriceTable = { find: () => ({ inputUsd: 1e-6, outputUsd: 4e-6 }) };
const request = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 25 };
/** What a call reserves at most is below 200e-6 USD: 25 tokens of output, and fewer than 100 bytes of input. */
const mostUsd = 200e-6;
/** What each call costs: 100e-6 USD. */
const usage = { inputTokens: 40, outputTokens: 15 };
const callUsd = 100e-6;
/** The day of a new `FakeClock`. Its time is 22:13. */
const day = "2023-11-14";

interface Caller {
  readonly agent: HostedAgent;
  readonly calls: () => number;
}

/** An agent that calls its model `calls` times, and before call number `pause` waits for the signal `go`. */
function caller(calls: number, pause = -1): Caller {
  const model = scriptedModel(
    Array.from({ length: calls + 5 }, () => ({ text: "hm", usage })),
    { provider: "acme", modelId: "m" },
  );
  const code = async (ctx: RunContext): Promise<string> => {
    for (let call = 0; call < calls; call++) {
      if (call === pause) await ctx.waitForSignal("go");
      await ctx.llm(request);
    }
    return "done";
  };
  return { agent: agent("caller", code, { models: { main: model } }), calls: () => model.calls.length };
}

/** A model that bills at most the output limit of the request. It answers when `answer` resolves. */
function billing(answer: () => Promise<void> = async () => {}): Model & { readonly billedUsd: () => number } {
  let billed = 0;
  const generate: Model["generate"] = async ({ maxOutputTokens = 0 }) => {
    const outputTokens = Math.min(15, maxOutputTokens);
    billed += 40e-6 + outputTokens * 4e-6;
    await answer();
    const message = { role: "assistant", content: [{ type: "text", text: "hm" }] } as const;
    return { message, stopReason: "stop", usage: { inputTokens: 40, outputTokens } };
  };
  return {
    provider: "acme",
    modelId: "billing",
    generate,
    async *stream(asked, options) {
      yield { type: "finish", ...(await generate(asked, options)) };
    },
    billedUsd: () => billed,
  };
}

interface Desk {
  readonly caps: SpendingCaps;
  readonly store: Store;
  readonly clock?: FakeClock;
  readonly capWaitMs?: number;
  readonly concurrency?: number;
}

function openOn({ caps, store, clock = new FakeClock(), ...more }: Desk): Promise<Runtime> {
  return createRuntime({ store, clock, prices, caps, pollMs: 200, sameName: "replace", ...more });
}

async function statusOf(runtime: Runtime, who: Caller, options: SubmitOptions = {}): Promise<string> {
  return (await (await runtime.submit(who.agent, null, options)).result()).status;
}

async function spentUsd(runtime: Runtime): Promise<number> {
  return (await runtime.usage({ by: "day" })).reduce((sum, { costUsd }) => sum + costUsd, 0);
}

describe.each(twoStores)("spending caps of runs in a %s store", (_name, prepare) => {
  it("B7: a user's cap ends the run as budget_exhausted and names cap, user, day, spending and reset; other users continue", async () => {
    const store = await (await prepare())();
    await using runtime = await openOn({ store, caps: { perUserPerDayUsd: 4 * callUsd } });
    const who = caller(9);
    const run = await runtime.submit(who.agent, null, { userId: "ann", tenantId: "acme" });
    const { status, error, costUsd } = await run.result();
    expect(status).toBe("budget_exhausted");
    expect(error?.code).toBe("budget_exhausted");
    expect(error?.message).toMatch(
      /^cap perUserPerDayUsd of 0.0004 USD is exhausted for a run of user ann and of tenant acme on 2023-11-14 \(UTC\): 0.0004 USD are spent, and the call needs up to 0.0000\d+ USD; the cap resets at 2023-11-15T00:00:00.000Z; then resume the run$/,
    );
    expect(error?.details?.["cap"]).toMatchObject({
      name: "perUserPerDayUsd",
      userId: "ann",
      tenantId: "acme",
      day,
      limitUsd: 4 * callUsd,
      spentUsd: 4e-4,
      heldUsd: 0,
      resetsAt: "2023-11-15T00:00:00.000Z",
    });
    expect(costUsd).toBe(4e-4);
    expect(await statusOf(runtime, caller(1), { userId: "ann", tenantId: "beta" })).toBe("completed");
    expect(await statusOf(runtime, caller(1), { userId: "bob", tenantId: "acme" })).toBe("completed");
    const events = [];
    for await (const event of store.events.read(run.runId))
      if (event.type === "budget_exhausted") events.push(event.data.cap?.name);
    expect(events).toEqual(["perUserPerDayUsd"]);
  });

  it("B7: a cap per agent and month names the agent and resets with the next month, and other agents continue", async () => {
    const store = await (await prepare())();
    await using runtime = await openOn({ store, caps: { perAgentPerMonthUsd: 4 * callUsd } });
    const who = caller(9);
    const run = await runtime.submit(who.agent, null, { userId: "ann", tenantId: "acme" });
    const { status, error, costUsd } = await run.result();
    const name = agentNameOf(run.agentId);
    expect([status, costUsd]).toEqual(["budget_exhausted", 4e-4]);
    expect(error?.message).toContain(
      `cap perAgentPerMonthUsd of 0.0004 USD is exhausted for calls of agent ${name} in a run of user ann`,
    );
    expect(error?.details?.["cap"]).toMatchObject({ agent: name, resetsAt: "2023-12-01T00:00:00.000Z" });
    const other = { ...caller(1).agent, id: formatAgentId({ name: "other" }) };
    expect((await (await runtime.submit(other, null)).result()).status).toBe("completed");
  });

  it("B7: each run returns what it did not spend, so that later runs can spend it up to the cap", async () => {
    const store = await (await prepare())();
    await using runtime = await openOn({ store, caps: { perDayUsd: 5 * callUsd } });
    const statuses: string[] = [];
    for (let run = 0; run < 6; run++) statuses.push(await statusOf(runtime, caller(1)));
    expect(statuses).toEqual([...Array.from({ length: 5 }, () => "completed"), "budget_exhausted"]);
    expect(await spentUsd(runtime)).toBe(5e-4);
  });

  /** Two processes on one store. A run of the first one has an open call, which ends with `answered`. */
  async function besideAnOpenCall(more: Partial<Desk> = {}) {
    const reopen = await prepare();
    const clock = new FakeClock();
    const caps = { perUserPerDayUsd: mostUsd };
    const one = await openOn({ store: await reopen(), caps, clock, ...more });
    const two = await openOn({ store: await reopen(), caps, clock, ...more });
    const answered = gate();
    const patient = agent("patient", async (ctx) => void (await ctx.llm(request)), {
      models: { main: billing(() => answered.promise) },
    });
    const run = await one.submit(patient, null, { userId: "ann" });
    await until(async () => (await run.snapshot()).ledger.open.length === 1);
    const end = async (): Promise<void> => {
      answered.resolve();
      expect((await run.result()).status).toBe("completed");
      await one.close();
      await two.close();
    };
    return { clock, one, two, answered, end };
  }

  it("B7: two processes share one cap, and capWaitMs 0 refuses a call for which an open call of another run leaves no room", async () => {
    const { two, end } = await besideAnOpenCall({ capWaitMs: 0 });
    const refused = await (await two.submit(caller(1).agent, null, { userId: "ann" })).result();
    expect(refused.status).toBe("budget_exhausted");
    expect(refused.error?.message).toContain("are held by calls and runs in progress");
    expect(await spentUsd(two)).toBe(0);
    await end();
  });

  it("B7: a call that does not fit its cap waits without a slot for another process's open call, and uses what that returns", async () => {
    const { clock, two, answered, end } = await besideAnOpenCall({ concurrency: 1 });
    const run = await two.submit(caller(1).agent, null, { userId: "ann" });
    await until(async () => (await run.summary()).status === "waiting");
    expect((await run.summary()).waitsFor).toEqual(["cap"]);
    // The only slot of the process is free, and a run of another user has a cap of its own.
    expect(await statusOf(two, caller(1), { userId: "bob" })).toBe("completed");
    answered.resolve();
    let status: string | undefined;
    void run.result().then((result) => (status = result.status));
    await until(async () => {
      await clock.advance(1_000);
      return status !== undefined;
    });
    expect(status).toBe("completed");
    await end();
  });

  it("B7: a call that waits for the cap of its agent is made when a call of that agent ends, before waiting calls of others", async () => {
    const clock = new FakeClock();
    const store = await (await prepare())();
    await using runtime = await openOn({ store, clock, caps: { perAgentPerDayUsd: mostUsd } });
    const answers = { slow: gate(), quick: gate() };
    const agents = Object.entries(answers).map(([name, answered]): HostedAgent => {
      const models = { main: billing(() => answered.promise) };
      return { ...agent(name, async (ctx) => void (await ctx.llm(request)), { models }) };
    }) as [HostedAgent, HostedAgent];
    const open = await Promise.all(agents.map((each) => runtime.submit(each, null)));
    for (const run of open) await until(async () => (await run.snapshot()).ledger.open.length === 1);
    const waiting = [];
    for (const each of agents) {
      const run = await runtime.submit(each, null);
      await until(async () => (await run.summary()).waitsFor.includes("cap"));
      waiting.push(run);
    }
    answers.quick.resolve();
    // The clock stands still, so that no call asks again by itself.
    expect((await waiting[1]?.result())?.status).toBe("completed");
    expect((await waiting[0]?.summary())?.waitsFor).toEqual(["cap"]);
    answers.slow.resolve();
    expect((await waiting[0]?.result())?.status).toBe("completed");
  });

  it("B7: a call that waits for a cap ends with deadline_exceeded at the deadline of its run", async () => {
    const { clock, two, end } = await besideAnOpenCall();
    const run = await two.submit(caller(1).agent, null, { userId: "ann", budget: { deadlineMs: 20_500 } });
    await until(async () => (await run.summary()).waitsFor.includes("cap"));
    await clock.advance(20_000);
    expect((await run.summary()).status).toBe("waiting");
    await clock.advance(501);
    expect((await run.result()).status).toBe("deadline_exceeded");
    await end();
  });

  it("B7: a call that still does not fit its cap after capWaitMs is refused, and the run can be resumed", async () => {
    const { clock, two, end } = await besideAnOpenCall({ capWaitMs: 30_000 });
    const who = caller(1);
    const run = await two.submit(who.agent, null, { userId: "ann" });
    await until(async () => (await run.summary()).status === "waiting");
    await clock.advance(29_000);
    expect((await run.summary()).status).toBe("waiting");
    await clock.advance(1_000);
    const { status, error } = await run.result();
    expect([status, error?.code, who.calls()]).toEqual(["budget_exhausted", "budget_exhausted", 0]);
    expect(error?.message).toContain("are held by calls and runs in progress");
    const events = [];
    for await (const { type } of run.events({ follow: false })) events.push(type);
    // It waited once, however often it asked.
    expect(events.filter((type) => type === "task_suspend" || type === "task_wake")).toEqual([
      "task_suspend",
      "task_wake",
    ]);
    await end();
  });

  it("B7: the waiting time for a cap also passes while no process executes the run", async () => {
    const reopen = await prepare();
    const clock = new FakeClock();
    const caps = { perDayUsd: mostUsd };
    const holder = await reopen();
    const limits = { perDayUsd: 200e3, perTenantPerDayUsd: null, perUserPerDayUsd: null };
    await holder.usage.draw(await ownRun(holder, "held"), { day, need: 200e3, want: 200e3, caps: limits });
    const first = await openOn({ store: await reopen(), caps, clock });
    const who = caller(1);
    const { runId } = await first.submit(who.agent, null);
    await until(async () => (await (await first.find(runId))?.summary())?.status === "waiting");
    await first.close();
    await clock.advance(60_000);
    await using second = await openOn({ store: await reopen(), caps, clock });
    second.register(who.agent);
    expect((await (await second.find(runId))?.result())?.status).toBe("budget_exhausted");
    await holder.close();
  });

  it("B7: four parallel runs under a cap that allows two calls at once all complete, and a cancelled wait ends at once", async () => {
    const store = await (await prepare())();
    await using runtime = await openOn({ store, caps: { perDayUsd: 500e-6 } });
    const gates = Array.from({ length: 4 }, () => gate());
    let started = 0;
    const model = billing(() => gates[started++]?.promise ?? Promise.resolve());
    const one = agent("one", async (ctx) => void (await ctx.llm(request)), { models: { main: model } });
    const runs = await Promise.all(Array.from({ length: 5 }, () => runtime.submit(one, null)));
    const waiting = async (): Promise<number> =>
      (await runtime.list()).runs.filter(({ waitsFor }) => waitsFor.includes("cap")).length;
    await until(async () => (await waiting()) === 2);
    const { runs: listed } = await runtime.list();
    const [stopped] = listed.filter(({ waitsFor }) => waitsFor.includes("cap"));
    const handle = runs.find(({ runId }) => runId === stopped?.runId);
    await handle?.cancel();
    expect((await handle?.result())?.status).toBe("cancelled");
    for (const each of gates) each.resolve();
    const ends = await Promise.all(runs.filter((run) => run !== handle).map((run) => run.result()));
    expect(ends.map(({ status }) => status)).toEqual(Array.from({ length: 4 }, () => "completed"));
    expect(await spentUsd(runtime)).toBe(4 * callUsd);
  });

  it.each([
    ["waits for a cap", 200e3],
    ["draws from a cap", 0],
  ])(
    "B7: a call that is abandoned while it %s holds no part of a cap, although its run continues",
    async (_when, held) => {
      const store = await (await prepare())();
      const caps = { perDayUsd: 300e3, perTenantPerDayUsd: null, perUserPerDayUsd: null };
      if (held > 0)
        await store.usage.draw(await ownRun(store, "held"), { day, need: held, want: held, caps });
      const [asked, decided, working, worked] = [gate(), gate(), gate(), gate()];
      // A draw whose answer arrives only when the call is abandoned.
      const draw: Store["usage"]["draw"] = async (lease, wanted) => {
        const outcome = await store.usage.draw(lease, wanted);
        asked.resolve();
        if (outcome.kind === "held") await working.promise;
        return outcome;
      };
      const usages = { draw, sum: (query: UsageQuery) => store.usage.sum(query) };
      await using runtime = await openOn({ store: { ...store, usage: usages }, caps: { perDayUsd: 300e-6 } });
      const code = async (ctx: RunContext): Promise<void> => {
        await ctx.race({
          ask: async (branch) => void (await branch.llm(request)),
          decide: async (branch) =>
            void (await branch.step("decide", async () => {
              await decided.promise;
              return null;
            })),
        });
        await ctx.step("work", async () => {
          working.resolve();
          await worked.promise;
          return null;
        });
      };
      const run = await runtime.submit(agent("racer", code, { models: { main: billing() } }), null);
      await asked.promise;
      decided.resolve();
      await working.promise;
      const other = await ownRun(store, "other");
      const left = 300e3 - held;
      await until(async () => {
        const outcome = await store.usage.draw(other, { day, need: left, want: left, caps });
        return outcome.kind === "held";
      });
      worked.resolve();
      expect((await run.result()).status).toBe("completed");
    },
  );

  it("B7: a call returns the part of a cap that it did not spend while other calls of its run are still open", async () => {
    const store = await (await prepare())();
    await using runtime = await openOn({ store, caps: { perDayUsd: 3 * callUsd }, capWaitMs: 0 });
    const [short, long] = [gate(), gate()];
    const answers = [short.promise, long.promise];
    const model = billing(() => answers.shift() ?? Promise.resolve());
    const code = async (ctx: RunContext): Promise<string> => {
      const call = async (branch: RunContext): Promise<null> => {
        await branch.llm(request);
        return null;
      };
      await ctx.parallel({ a: call, b: call });
      return "done";
    };
    const run = await runtime.submit(agent("two", code, { models: { main: model } }), null);
    await until(async () => (await run.snapshot()).ledger.open.length === 2);
    const roomBefore = await roomIn(store, 300e3, "before");
    short.resolve();
    await until(async () => (await run.snapshot()).ledger.open.length === 1);
    await until(async () => (await spentUsd(runtime)) === callUsd);
    // The first call held more than it cost.
    expect(await roomIn(store, 300e3, "after")).toBeGreaterThan(roomBefore);
    long.resolve();
    expect((await run.result()).status).toBe("completed");
  });

  it("B7: a run that waits for a signal holds no part of a cap, and draws again when it continues", async () => {
    const store = await (await prepare())();
    await using runtime = await openOn({ store, caps: { perDayUsd: 3 * callUsd } });
    const first = await runtime.submit(caller(2, 1).agent, null);
    await until(async () => (await runtime.list()).runs[0]?.status === "waiting");
    const other = agent("other", async (ctx) => void (await ctx.llm(request)), {
      models: { main: billing() },
    });
    expect((await (await runtime.submit(other, null)).result()).status).toBe("completed");
    await first.signal("go", null);
    expect((await first.result()).status).toBe("completed");
    expect(await spentUsd(runtime)).toBe(3e-4);
  });

  it("B7: a cap resets with the UTC day, and a run that the cap has ended completes when it is resumed", async () => {
    const reopen = await prepare();
    const clock = new FakeClock();
    const caps = { perDayUsd: 2 * callUsd };
    const first = await openOn({ store: await reopen(), caps, clock });
    const who = caller(3);
    const run = await first.submit(who.agent, null);
    expect((await run.result()).status).toBe("budget_exhausted");
    await first.close();
    const tomorrow = new FakeClock(Date.parse("2023-11-15"));
    await using second = await openOn({ store: await reopen(), caps, clock: tomorrow });
    second.register(who.agent);
    const again = await second.find(run.runId);
    await again?.resume();
    await until(async () => (await second.usage({ by: "day" })).length === 2);
    expect((await second.usage({ by: "day" })).map(({ key, turns }) => [key, turns])).toEqual([
      [day, 2],
      ["2023-11-15", 1],
    ]);
  });

  it("B7: a cap of zero allows no model call, and a run without model calls completes", async () => {
    const store = await (await prepare())();
    await using runtime = await openOn({ store, caps: { perDayUsd: 0 } });
    const who = caller(1);
    expect(await statusOf(runtime, who)).toBe("budget_exhausted");
    expect(who.calls()).toBe(0);
    expect(await statusOf(runtime, { agent: agent("idler", async () => "done"), calls: () => 0 })).toBe(
      "completed",
    );
  });

  it("B7, B1: a call that does not fit a cap waits for the open calls of its run, and then uses what they return", async () => {
    const store = await (await prepare())();
    // Two calls reserve about 140e-6 USD each. The third one fits when they are settled with 100e-6 USD each.
    await using runtime = await openOn({ store, caps: { perDayUsd: 3 * callUsd } });
    const answered = gate();
    const model = billing(() => answered.promise);
    const code = async (ctx: RunContext): Promise<string> => {
      const call = async (branch: RunContext): Promise<null> => {
        await branch.llm(request);
        return null;
      };
      await ctx.parallel({ a: call, b: call, c: call });
      return "done";
    };
    const run = await runtime.submit(agent("three", code, { models: { main: model } }), null);
    await until(async () => (await run.snapshot()).ledger.open.length === 2);
    answered.resolve();
    expect(await run.result()).toMatchObject({ status: "completed", turns: 3 });
    expect(await spentUsd(runtime)).toBeLessThanOrEqual(3 * callUsd);
  });

  it("B7: parallel calls of one run and of several runs never spend more than the cap", async () => {
    const store = await (await prepare())();
    const cap = 10 * callUsd;
    await using runtime = await openOn({ store, caps: { perDayUsd: cap } });
    const model = billing();
    const code = async (ctx: RunContext): Promise<string> => {
      const call = async (branch: RunContext): Promise<null> => {
        await branch.llm(request);
        return null;
      };
      await ctx.parallel({ a: call, b: call, c: call });
      return "done";
    };
    const crowd = agent("crowd", code, { models: { main: model } });
    const runs = await Promise.all(Array.from({ length: 8 }, () => runtime.submit(crowd, null)));
    const ends = await Promise.all(runs.map((run) => run.result()));
    const statuses = new Set(ends.map(({ status }) => status));
    statuses.delete("completed");
    expect([...statuses]).toEqual(["budget_exhausted"]);
    expect(model.billedUsd()).toBeGreaterThan(cap / 2);
    expect(model.billedUsd()).toBeLessThanOrEqual(cap + 1e-12);
    expect(await spentUsd(runtime)).toBeCloseTo(model.billedUsd(), 12);
  });
});

test("B7, B1: an answer that is cut at the amount that the cap leaves ends as budget_exhausted and names the cap", async () => {
  const long = scriptedModel([{ text: "a", usage, stopReason: "length" }], {
    provider: "acme",
    modelId: "m",
  });
  const writer = agent("writer", async (ctx) => void (await ctx.llm(request)), { models: { main: long } });
  await using runtime = await createRuntime({ clock: new FakeClock(), prices, caps: { perDayUsd: 150e-6 } });
  const { status, error } = await (await runtime.submit(writer, null)).result();
  expect(status).toBe("budget_exhausted");
  expect(long.calls[0]?.maxOutputTokens).toBeLessThan(25);
  expect(error?.details?.["cap"]).toMatchObject({ name: "perDayUsd", limitUsd: 150e-6 });
});

test("B7, B4: caps refuse a model without a known price, unless unknownPrice is ignore", async () => {
  const caps = { perDayUsd: 1 };
  await using strict = await createRuntime({ clock: new FakeClock(), caps });
  const { status, error } = await (await strict.submit(caller(1).agent, null)).result();
  expect([status, error?.code]).toEqual(["failed", "unknown_price"]);
  expect(error?.message).toContain("acme/m has no known price and a spending cap applies");
  await using lenient = await createRuntime({ clock: new FakeClock(), caps, unknownPrice: "ignore" });
  expect(await statusOf(lenient, caller(1))).toBe("completed");
});

test.each([
  [
    { perDayUsd: Number.NaN },
    /^invalid perDayUsd NaN of caps: expected a number from 0 and below 9000000, or null for no cap/,
  ],
  [{ perUserPerDayUsd: -1 }, /^invalid perUserPerDayUsd -1 of caps/],
  [{ perTenantPerDayUsd: Infinity }, /^invalid perTenantPerDayUsd Infinity of caps/],
  [{ perDayUsd: "5" }, /^invalid perDayUsd "5" of caps/],
  [{ perDayUSD: 5 }, /^unknown option "perDayUSD" of caps: use "perDayUsd"/],
  [5, /^invalid options of caps/],
])("openRuntime({ caps: %o }) is refused", async (caps, message) => {
  await expect(createRuntime({ caps: caps as SpendingCaps })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringMatching(message),
  });
});

test("B7: caps that are null or absent set no limit", async () => {
  await using runtime = await createRuntime({ clock: new FakeClock(), caps: { perDayUsd: null } });
  expect(await statusOf(runtime, caller(1))).toBe("completed");
});

test("B7: after a kill at any write, the run completes within the cap and holds no cap share at its end", async () => {
  const calls = 3;
  // Enough for three calls, one unreported call and the bound of the last one.
  const caps = { perDayUsd: calls * callUsd + 2 * mostUsd };
  const work = { agents: () => [caller(calls).agent] as const, options: { prices, caps } };
  const { writes } = await runWorkload(work);
  // Write 1 registers the worker.
  for (let at = 2; at <= writes; at++) {
    for (const when of ["before", "after"] as const) {
      const { status, totals, store } = await runWorkload(work, { at, when });
      const spent = Math.round((totals[0]?.costUsd ?? 0) * 1e9);
      expect([at, when, status]).toEqual([at, when, "completed"]);
      expect(spent).toBeLessThanOrEqual(Math.round(caps.perDayUsd * 1e9));
      expect([at, when, await roomIn(store, Math.round(caps.perDayUsd * 1e9))]).toEqual([
        at,
        when,
        Math.round(caps.perDayUsd * 1e9) - spent,
      ]);
    }
  }
});

/** What a new run could draw from the cap, in nano-dollars. */
async function roomIn(store: Store, perDayUsd: number, name = "new"): Promise<number> {
  const caps = { perDayUsd, perTenantPerDayUsd: null, perUserPerDayUsd: null };
  const lease = await ownRun(store, name);
  const outcome = await store.usage.draw(lease, { day, need: 0, want: 1e15, caps });
  await store.journal.append(lease, { number: 1, at: 1, usage: [] });
  return outcome.kind === "held" ? outcome.amount : 0;
}
