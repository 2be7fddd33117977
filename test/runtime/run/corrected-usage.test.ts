import { describe, expect, it, test } from "vitest";
import {
  type Fault,
  Transcript,
  userMessage,
  type Event,
  type HostedAgent,
  type Model,
  type ModelResponse,
  type PriceTable,
  type ReportedUsage,
  type RunHandle,
  type RunId,
  type Runtime,
  type Store,
} from "../../../src/kernel/index.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { agent, gate, until } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const prices: PriceTable = { find: () => ({ inputUsd: 1e-6, outputUsd: 4e-6 }) };
const request = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 25 };
/** What each call costs: 100e-6 USD. */
const usage = { inputTokens: 40, outputTokens: 15 };
const callUsd = 100e-6;

function response(reported: ReportedUsage = usage): ModelResponse {
  const message = { role: "assistant", content: [{ type: "text", text: "hm" }] } as const;
  return { message, stopReason: "stop", usage: reported };
}

/**
 * A model that ignores that a call is aborted. Call number `place` answers when `answers[place]` resolves, if it exists,
 * with the usage to which it resolves.
 */
function stubborn(
  ...answers: readonly (Promise<void | ReportedUsage> | undefined)[]
): Model & { calls: () => number } {
  let calls = 0;
  const generate: Model["generate"] = async () => {
    return response((await answers[calls++]) ?? usage);
  };
  return {
    provider: "acme",
    modelId: "m",
    generate,
    async *stream(asked, options) {
      yield { type: "finish", ...(await generate(asked, options)) };
    },
    calls: () => calls,
  };
}

function asks(model: Model): HostedAgent {
  return agent("clerk", async (ctx) => void (await ctx.llm(request)), { models: { main: model } });
}

interface Office {
  readonly runtime: Runtime;
  readonly clock: FakeClock;
  readonly store: Store;
}

async function openOffice(store: Store, onError?: (error: Fault) => void): Promise<Office> {
  const clock = new FakeClock();
  const runtime = await createRuntime({
    store,
    clock,
    prices,
    pollMs: 10,
    retry: { baseDelayMs: 1, jitter: 0 },
    modelTimeouts: { totalMs: 1_000 },
    sameName: "replace",
    ...(onError && { onError }),
  });
  return { runtime, clock, store };
}

/** Runs an agent whose first call times out and whose second call answers. */
async function loseFirstCall(
  { runtime, clock }: Office,
  model: ReturnType<typeof stubborn>,
): Promise<RunHandle> {
  const run = await runtime.submit(asks(model), null);
  await until(() => model.calls() === 1);
  await clock.advance(1_000);
  await clock.advance(10);
  expect((await run.result()).status).toBe("completed");
  return run;
}

async function ofType<Type extends Event["type"]>(
  store: Store,
  runId: RunId,
  type: Type,
): Promise<Event<Type>[]> {
  const found: Event<Type>[] = [];
  for await (const event of store.events.read(runId))
    if (event.type === type) found.push(event as Event<Type>);
  return found;
}

describe.each(twoStores)("corrected usage of calls in a %s store", (_name, prepare) => {
  it("B3: a result and the totals show what an unreported call was charged and what it likely cost", async () => {
    const office = await openOffice(await (await prepare())());
    const never = gate();
    const run = await loseFirstCall(office, stubborn(never.promise));
    const [lost] = await ofType(office.store, run.runId, "budget_lost");
    const { costUsd, unreported } = await run.result();
    expect(unreported).toEqual({
      tokens: lost?.data.tokens,
      costUsd: lost?.data.costUsd,
      likelyUsd: callUsd,
    });
    expect(costUsd).toBeCloseTo(callUsd + (lost?.data.costUsd ?? 0), 12);
    const [row] = await office.runtime.usage({ by: "day" });
    expect(row?.unreported).toEqual(unreported);
    expect((await run.summary()).unreported).toEqual(unreported);
    await office.runtime.close();
  });

  it("B3: the late answer of a call that timed out corrects the charge of its ended run once, and the run stays ended", async () => {
    const office = await openOffice(await (await prepare())());
    const { runtime, store } = office;
    const late = gate();
    const run = await loseFirstCall(office, stubborn(late.promise));
    const before = await run.result();
    late.resolve();
    await until(async () => (await ofType(store, run.runId, "usage_corrected")).length > 0);
    const result = await run.result();
    expect(result).toMatchObject({
      status: "completed",
      costUsd: 2 * callUsd,
      unreported: { tokens: 0, costUsd: 0 },
      usage: { inputTokens: 80, outputTokens: 30, costUsd: 2 * callUsd },
      turns: before.turns,
    });
    const [corrected] = await ofType(store, run.runId, "usage_corrected");
    expect(corrected?.data).toMatchObject({
      charged: { costUsd: before.unreported.costUsd },
      status: "completed",
    });
    expect((await run.summary()).endedAt).not.toBeNull();
    expect(await run.summary()).toMatchObject({ status: "completed", costUsd: 2 * callUsd });
    const seen: string[] = [];
    for await (const { type } of run.events()) seen.push(type);
    expect(seen.slice(-2)).toEqual(["run_end", "usage_corrected"]);
    const [row] = await runtime.usage({ by: "model" });
    expect(row).toMatchObject({
      turns: 1,
      runs: 1,
      inputTokens: 80,
      outputTokens: 30,
      costUsd: 2 * callUsd,
      unreported: { tokens: 0, costUsd: 0 },
    });
    const [lost] = await ofType(store, run.runId, "budget_lost");
    const again = runtime.correctUsage(run.runId, lost?.data.reservationId ?? "", usage);
    await expect(again).rejects.toMatchObject({ code: "already_exists" });
    await runtime.close();
  });

  it("B3: correctUsage() replaces the charge of a call at its price or a given cost, and refuses a second correction", async () => {
    const office = await openOffice(await (await prepare())());
    const { runtime, store } = office;
    const run = await loseFirstCall(office, stubborn(gate().promise));
    const [lost] = await ofType(store, run.runId, "budget_lost");
    const call = lost?.data.reservationId ?? "";
    const refused = async (correction: Promise<void>, code: string, message: string): Promise<void> =>
      expect(correction).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
    await refused(
      runtime.correctUsage(run.runId, "t0 9 1", usage),
      "not_found",
      "use the reservationId of a budget_lost event",
    );
    await refused(runtime.correctUsage("run_none", call, usage), "not_found", "run_none");
    await refused(
      runtime.correctUsage(run.runId, call, { inputTokens: 1 } as ReportedUsage),
      "invalid_argument",
      "outputTokens undefined of correctUsage()",
    );
    await refused(
      runtime.correctUsage(run.runId, call, { ...usage, cost: 1 } as ReportedUsage),
      "invalid_argument",
      'unknown option "cost" of correctUsage()',
    );
    // A mail with such figures could never be consumed, and no later correction would be accepted.
    await refused(
      runtime.correctUsage(run.runId, call, { ...usage, costUsd: 1e7 }),
      "invalid_argument",
      "invalid amount 10000000 USD",
    );
    const countless = { inputTokens: Number.MAX_SAFE_INTEGER, outputTokens: 1, costUsd: 0 };
    await refused(
      runtime.correctUsage(run.runId, call, countless),
      "invalid_argument",
      "more than can be counted",
    );
    await refused(
      runtime.forTenant({ tenantId: "acme" }).correctUsage(run.runId, call, usage),
      "permission_denied",
      "call it on the runtime itself",
    );
    await runtime.correctUsage(run.runId, call, usage);
    await refused(
      runtime.correctUsage(run.runId, call, { ...usage, costUsd: 9 }),
      "already_exists",
      "only the first correction is used",
    );
    await until(async () => (await run.result()).unreported.tokens === 0);
    expect((await run.result()).costUsd).toBe(2 * callUsd);
    const again = await loseFirstCall(office, stubborn(gate().promise));
    const [other] = await ofType(store, again.runId, "budget_lost");
    await runtime.correctUsage(again.runId, other?.data.reservationId ?? "", { ...usage, costUsd: 5e-6 });
    await until(async () => (await again.result()).unreported.tokens === 0);
    expect((await again.result()).costUsd).toBe(105e-6);
    expect((await runtime.usage({ by: "day" }))[0]?.costUsd).toBe(305e-6);
    await runtime.close();
  });

  it("B3, B7: a correction of usage frees the part of the daily cap that the charge had used up", async () => {
    const store = await (await prepare())();
    const clock = new FakeClock();
    const runtime = await createRuntime({
      store,
      clock,
      prices,
      caps: { perDayUsd: 250e-6 },
      retry: false,
      modelTimeouts: { totalMs: 1_000 },
      pollMs: 10,
      sameName: "replace",
    });
    const model = stubborn(gate().promise);
    const first = await runtime.submit(asks(model), null);
    await until(() => model.calls() === 1);
    await clock.advance(1_000);
    expect((await first.result()).status).toBe("failed");
    const second = await runtime.submit(asks(stubborn()), null);
    const third = await runtime.submit(asks(stubborn()), null);
    const statuses = [(await second.result()).status, (await third.result()).status];
    expect(statuses.toSorted()).toEqual(["budget_exhausted", "completed"]);
    const [lost] = await ofType(store, first.runId, "budget_lost");
    await runtime.correctUsage(first.runId, lost?.data.reservationId ?? "", {
      inputTokens: 1,
      outputTokens: 0,
    });
    await until(async () => (await first.result()).unreported.tokens === 0);
    const stopped = statuses[0] === "completed" ? third : second;
    await stopped.resume();
    await until(async () => (await stopped.result()).status === "completed");
    await runtime.close();
  });
});

/** A model that streams its input and one delta. The first stream then stays open until `cut` resolves, and fails. */
function reporting(cut: Promise<void>, reports: ReportedUsage): Model & { calls: () => number } {
  let calls = 0;
  return {
    ...stubborn(),
    async *stream() {
      const isFirst = calls++ === 0;
      yield { type: "usage", usage: reports };
      yield { type: "text_delta", text: "h" };
      yield { type: "usage", usage: reports };
      if (isFirst) await cut;
      if (isFirst) throw new Error("socket hang up");
      yield { type: "finish", ...response() };
    },
    calls: () => calls,
  };
}

test("B3: an unreported call whose input was reported is charged this input and the output limit, also after a crash", async () => {
  const clock = new FakeClock();
  await using runtime = await createRuntime({ clock, prices, retry: { baseDelayMs: 1 } });
  const cut = gate();
  const model = reporting(cut.promise, { inputTokens: 3, outputTokens: 0 });
  const run = await runtime.submit(asks(model), null, { streaming: true });
  // The narrowed charge is durable while the call is open, so that it also holds if the process dies now.
  const held = async () => (await run.snapshot()).ledger.open[0];
  await until(async () => (await held())?.narrowed !== undefined);
  expect((await held())?.narrowed).toEqual({ tokens: 28, nanoUsd: 103_000, turns: 1 });
  expect((await held())?.held.nanoUsd).toBeGreaterThan(103_000);
  cut.resolve();
  await until(async () => {
    await clock.advance(10);
    return model.calls() === 2;
  });
  const { status, unreported } = await run.result();
  expect([status, unreported]).toEqual(["completed", { tokens: 28, costUsd: 103e-6, likelyUsd: 100e-6 }]);
});

test("B3: a late answer whose cost cannot be counted is reported, and the charge stays", async () => {
  const late = gate();
  const errors: Fault[] = [];
  const office = await openOffice(memoryStore({ hash: sha256 }), (error) => void errors.push(error));
  const broken: ReportedUsage = { ...usage, costUsd: 1e7 };
  const run = await loseFirstCall(office, stubborn(late.promise.then(() => broken)));
  const { unreported } = await run.result();
  late.resolve();
  await until(() => errors.length > 0);
  expect(errors.map(({ code, message }) => [code, message])).toEqual([
    ["invalid_argument", "invalid amount 10000000 USD: expected a number from 0 to 9 million"],
  ]);
  expect((await run.result()).unreported).toEqual(unreported);
  await office.runtime.close();
});

test("B3: an invalid usage part of a stream fails the call and names the model", async () => {
  await using runtime = await createRuntime({ clock: new FakeClock(), prices, retry: false });
  const model = reporting(Promise.resolve(), { inputTokens: -1, outputTokens: 0 });
  const run = await runtime.submit(asks(model), null, { streaming: true });
  const { error } = await run.result();
  expect(error?.message).toBe("acme/m returned an invalid usage.inputTokens -1: expected an integer from 0");
});
