import { expect, onTestFinished, test } from "vitest";
import {
  formatRunId,
  Transcript,
  userMessage,
  type Event,
  type HostedAgent,
  type Lease,
  type LostOwner,
  type RunContext,
  type RunHandle,
  type RunId,
  type Runtime,
  type Store,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { memoryStore, sha256, type RuntimeOptions } from "../../../src/runtime/index.ts";
import { FakeClock, scriptedModel } from "../../../src/testing/index.ts";
import { ownRun } from "../../../src/testing/contracts/store-fixtures.ts";
import { agent, readAll, spawnTask, until } from "../runtime-setup.ts";

/** A store that stops to answer when its process dies. */
function mortalStore(store: Store): { readonly store: Store; readonly die: () => void } {
  let isDead = false;
  const mortalPart = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get(target, key): unknown {
        const value: unknown = Reflect.get(target, key);
        if (typeof value !== "function") return value;
        return (...values: readonly unknown[]): unknown =>
          isDead ? new Promise(() => undefined) : Reflect.apply(value, target, values);
      },
    });
  const parts = Object.entries(store).map(([name, part]: [string, unknown]) => [
    name,
    typeof part === "object" && part !== null ? mortalPart(part) : part,
  ]);
  return { store: { ...store, ...(Object.fromEntries(parts) as object) }, die: () => (isDead = true) };
}

/** Workers that run one after the other on one store. */
class Lives {
  readonly clock = new FakeClock();
  readonly store = memoryStore({ hash: sha256 });
  readonly errors: unknown[] = [];
  readonly #agents: readonly HostedAgent[];
  readonly #options: RuntimeOptions;
  /** Changes the leases that the workers claim. */
  changes: (lease: Lease) => Lease = (lease) => lease;
  count = 0;

  constructor(agents: readonly HostedAgent[], options: RuntimeOptions = {}) {
    this.#agents = agents;
    this.#options = options;
  }

  /** Opens a worker. `die` ends it as a killed process ends: nothing that it does reaches the store any more. */
  async begin(
    options: RuntimeOptions = {},
  ): Promise<{ readonly runtime: Runtime; readonly die: () => Promise<void> }> {
    const workerId = `life-${++this.count}`;
    const { leases } = this.store;
    const changed: Store = {
      ...this.store,
      leases: new Proxy(leases, {
        get: (target, key): unknown => {
          const value: unknown = Reflect.get(target, key);
          if (typeof value !== "function") return value;
          const call = (...values: readonly unknown[]): unknown => Reflect.apply(value, target, values);
          if (key !== "claim") return call;
          return async (...values: readonly unknown[]) =>
            ((await call(...values)) as readonly Lease[]).map((lease) => this.changes(lease));
        },
      }),
    };
    const { store, die } = mortalStore(changed);
    const runtime = await createRuntime({
      store,
      clock: this.clock,
      workerId,
      keepAlive: false,
      onError: (error) => this.errors.push(error),
      ...this.#options,
      ...options,
    });
    for (const each of this.#agents) runtime.register(each);
    return {
      runtime,
      die: async () => {
        die();
        await this.store.leases.dismiss(workerId);
      },
    };
  }

  /** The last worker, which closes at the end of the test. */
  async last(options?: RuntimeOptions): Promise<Runtime> {
    const { runtime } = await this.begin(options);
    onTestFinished(() => runtime.close());
    return runtime;
  }

  async statusOf(runId: RunId): Promise<string> {
    const { status, waitsFor } = (await this.store.journal.summary(runId)) ?? {};
    return [status, ...(waitsFor ?? [])].join(" ");
  }

  async typesOf(runId: RunId): Promise<readonly string[]> {
    return (await readAll(this.store, runId)).map(({ type }) => type);
  }
}

async function find(runtime: Runtime, runId: RunId): Promise<RunHandle> {
  const run = await runtime.find(runId);
  if (run === undefined) throw new Error(`there is no run ${runId}`);
  return run;
}

/** A step in whose body the process dies until `isCorrected` is set. `inside` resolves each time that the body starts. */
function deadlyStep() {
  const state = { isCorrected: false, entered: 0, inside: Promise.withResolvers<void>() };
  const step = (ctx: RunContext): Promise<string> =>
    ctx.step("deadly", async () => {
      state.entered++;
      state.inside.resolve();
      return state.isCorrected ? "survived" : new Promise<never>(() => undefined);
    });
  /** Starts processes that die after the step has begun in them. */
  const killLives = async (lives: Lives, count: number): Promise<void> => {
    for (let each = 0; each < count; each++) {
      state.inside = Promise.withResolvers<void>();
      const { die } = await lives.begin();
      await state.inside.promise;
      await die();
    }
  };
  return { state, step, killLives };
}

const poisonRun = formatRunId("poison");

test("L7: runs that wait are neither replayed, counted nor paused when another run kills their workers", async () => {
  const { state, step, killLives } = deadlyStep();
  const begun = new Map<string, number>();
  let promiseId = "";
  const waiting = (name: string, wait: (ctx: RunContext) => Promise<unknown>): HostedAgent =>
    agent(name, async (ctx) => {
      begun.set(name, (begun.get(name) ?? 0) + 1);
      await ctx.step("before", async () => "recorded");
      await wait(ctx);
      return `${name} done`;
    });
  const approval = { toolName: "ask", callId: "c", input: {}, reason: "a question" };
  const silent = waiting("silent", (ctx) => ctx.waitForSignal("never"));
  const sleeper = waiting("child", (ctx) => ctx.waitForSignal("grow"));
  const waits = [
    waiting("person", (ctx) => ctx.approval(approval)),
    waiting("signal", (ctx) => ctx.waitForSignal("go")),
    waiting("time", (ctx) => ctx.sleep(3_600_000)),
    waiting("reply", (ctx) => ctx.ask(silent.id, "hello")),
    waiting("parent", async (ctx) => ctx.ask(await spawnTask(ctx, sleeper), null)),
    waiting("promise", (ctx) => ctx.waitForPromise((promiseId = ctx.newPromise()))),
    waiting("update", (ctx) => ctx.waitForUpdate("address")),
    waiting("race", (ctx) =>
      ctx.race({
        promise: async (own) => void (await own.waitForPromise(own.newPromise())),
        time: async (own) => own.sleep(3_600_000),
      }),
    ),
  ];
  const poison = agent("poison", step);
  const later = waiting("later", async () => undefined);
  const lives = new Lives([poison, silent, sleeper, later, ...waits]);
  const first = await lives.begin();
  const runs = await Promise.all(
    waits.map((each, index) => first.runtime.submit(each, null, { runId: formatRunId(`waits-${index}`) })),
  );
  const startLater = await first.runtime.submit(later, null, { startAt: lives.clock.now() + 7_200_000 });
  const ofWorkflows = ["waiting signal", "waiting signal", "waiting signal time"];
  const expected = [
    "waiting person",
    "waiting signal",
    "waiting time",
    "waiting message",
    "waiting signal",
    ...ofWorkflows,
  ];
  const statuses = (): Promise<string[]> => Promise.all(runs.map(({ runId }) => lives.statusOf(runId)));
  await until(async () => (await statuses()).join() === expected.join());
  await until(async () => (await lives.store.journal.list({ status: "waiting" })).runs.length === 9);
  const counted = new Map(begun);
  await first.runtime.submit(poison, null, { runId: poisonRun });
  await state.inside.promise;
  await first.die();
  await killLives(lives, 4);
  const runtime = await lives.last();
  await until(async () => (await lives.statusOf(poisonRun)) === "paused crash_loop");
  expect(state.entered).toBe(5);
  expect(await statuses()).toEqual(expected);
  expect(await lives.statusOf(startLater.runId)).toBe("pending time");
  expect(begun).toEqual(counted);
  for (const { runId } of runs) expect(await lives.typesOf(runId)).not.toContain("run_recover");
  // Each of them continues when its wait ends.
  const found = await Promise.all(runs.map(({ runId }) => find(runtime, runId)));
  const [person, signal, time, , parent, promise, , race] = found;
  const [question] = (await runtime.approvals()).approvals;
  await person?.approve(question?.approvalId ?? "", { decision: "approved" });
  await signal?.signal("go");
  await parent?.signal("grow", null, "t1");
  await runtime.promise(promiseId).resolve();
  await lives.clock.advance(3_600_001);
  const results = [person, signal, time, parent, promise, race].map(
    async (run) => (await run?.result())?.output,
  );
  const names = ["person", "signal", "time", "parent", "promise", "race"];
  expect(await Promise.all(results)).toEqual(names.map((name) => `${name} done`));
});

test("L7: a run that waits for a cap keeps that status in each next process, and its recoveries are not counted", async () => {
  const caps = { perDayUsd: 100e-6 };
  const model = scriptedModel(["hm"]);
  const request = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 20 };
  const caller = agent("caller", async (ctx) => void (await ctx.llm(request)), { models: { main: model } });
  const prices = { find: () => ({ inputUsd: 1e-9, outputUsd: 4e-6 }) };
  const lives = new Lives([caller], { caps, prices, capWaitMs: 3_600_000, crashLoopLimit: 2 });
  const holder = await ownRun(lives.store, "held");
  const limits = { perDayUsd: 100e3, perTenantPerDayUsd: null, perUserPerDayUsd: null };
  const day = new Date(lives.clock.now()).toISOString().slice(0, 10);
  await lives.store.usage.draw(holder, { day, need: 100e3, want: 100e3, caps: limits });
  const first = await lives.begin();
  const { runId } = await first.runtime.submit(caller, null);
  let { die } = first;
  for (let life = 0; life < 4; life++) {
    await until(async () => (await lives.statusOf(runId)) === "waiting cap");
    await die();
    ({ die } = await lives.begin());
    await until(async () => {
      const types = await lives.typesOf(runId);
      return types.filter((type) => type === "run_recover").length === life + 1;
    });
  }
  await die();
  const runtime = await lives.last();
  await until(async () => (await lives.statusOf(runId)) === "waiting cap");
  expect(await lives.typesOf(runId)).not.toContain("run_pause");
  await lives.store.journal.append(holder, { number: 1, at: 1, usage: [] });
  const ending = (await find(runtime, runId)).result();
  await lives.clock.advance(1_000);
  expect([(await ending).status, model.calls.length]).toEqual(["completed", 1]);
});

test("L7: a child that kills its worker pauses the run, and resume() continues parent, child and sibling where they stopped", async () => {
  const { state, step, killLives } = deadlyStep();
  let steps: string[] = [];
  const note = (ctx: RunContext, name: string): Promise<string> =>
    ctx.step(name, async () => (steps.push(name), name));
  const child = agent("child", async (ctx) => [await note(ctx, "begin child"), await step(ctx)]);
  const sibling = agent("sibling", async (ctx) => ctx.waitForSignal("go"));
  const parent = agent("parent", async (ctx) => {
    await note(ctx, "begin parent");
    const [one, other] = [await spawnTask(ctx, child), await spawnTask(ctx, sibling)];
    return [await ctx.ask(one, null), await ctx.ask(other, null)] as never;
  });
  const agents = [parent, child, sibling];
  const lives = new Lives(agents, { crashLoopLimit: 3 });
  const { runtime, die } = await lives.begin();
  const { runId } = await runtime.submit(parent, null);
  await state.inside.promise;
  await die();
  await killLives(lives, 2);
  const run = await find(await lives.last(), runId);
  await until(async () => (await lives.statusOf(runId)) === "paused crash_loop");
  // Only resume() continues the run. The signal is kept.
  await run.signal("go", "signalled", "t2");
  await until(async () => (await lives.store.mailbox.read(runId)).length === 0);
  expect([await lives.statusOf(runId), state.entered]).toEqual(["paused crash_loop", 3]);
  expect(await lives.typesOf(runId)).not.toContain("task_end");
  state.isCorrected = true;
  await run.resume();
  const crashed = await run.result();
  expect(steps).toEqual(["begin parent", "begin child"]);
  // The same run without crashes.
  steps = [];
  const others = new Lives(agents);
  const second = await (await others.last()).submit(parent, null);
  await until(async () => (await others.statusOf(second.runId)) === "waiting signal");
  await second.signal("go", "signalled", "t2");
  const { status, output } = await second.result();
  expect(crashed).toMatchObject({ status: "completed", output });
  expect([status, steps]).toEqual(["completed", ["begin parent", "begin child"]]);
});

test("L7: a lost owner counts as a recovery only once its end is known, and no longer if it was withdrawn", async () => {
  const { state, step, killLives } = deadlyStep();
  const poison = agent("poison", step);
  const lives = new Lives([poison], { crashLoopLimit: 3 });
  const alive = new Set<string>();
  lives.store.leases.haveEnded = (owners) => owners.map(({ workerId }) => !alive.has(workerId));
  for (let life = 1; life < 10; life++) alive.add(`life-${life}`);
  const { runtime, die } = await lives.begin();
  await runtime.submit(poison, null, { runId: poisonRun });
  await state.inside.promise;
  await die();
  await killLives(lives, 4);
  expect(await lives.statusOf(poisonRun)).not.toContain("crash_loop");
  // Two of the five are known to have ended, and the next two as well.
  for (const life of [2, 4]) alive.delete(`life-${life}`);
  await killLives(lives, 1);
  alive.delete("life-6");
  await lives.last();
  await until(async () => (await lives.statusOf(poisonRun)) === "paused crash_loop");
  const events = await readAll(lives.store, poisonRun);
  const pause = events.find((event): event is Event<"run_pause"> => event.type === "run_pause");
  const named = (owners: readonly LostOwner[] | undefined) => owners?.map(({ workerId }) => workerId);
  expect(named(pause?.data.crashLoop?.ended)).toEqual(["life-2", "life-4", "life-6"]);
  expect(named(pause?.data.crashLoop?.unknown)).toEqual(["life-1", "life-3", "life-5"]);
});

test("L7: a run whose code kills its process after a wait, or before the first step, is paused as well", async () => {
  let entered = Promise.withResolvers<void>();
  const dies = async (): Promise<never> => {
    entered.resolve();
    return new Promise<never>(() => undefined);
  };
  const woken = agent("woken", async (ctx) => {
    await ctx.sleep(1_000);
    return dies();
  });
  const hasty = agent("hasty", dies);
  for (const poison of [woken, hasty]) {
    const lives = new Lives([poison], { crashLoopLimit: 3 });
    const first = await lives.begin();
    const { runId } = await first.runtime.submit(poison, null);
    if (poison === woken) await until(async () => (await lives.statusOf(runId)) === "waiting time");
    await first.die();
    await lives.clock.advance(1_001);
    let deaths = 0;
    while (!(await lives.statusOf(runId)).includes("crash_loop")) {
      entered = Promise.withResolvers<void>();
      const { die } = await lives.begin();
      const isPaused = until(async () => (await lives.statusOf(runId)) === "paused crash_loop");
      const isEntered = await Promise.race([entered.promise.then(() => true), isPaused.then(() => false)]);
      if (isEntered) deaths++;
      await die();
      if (deaths > 5) throw new Error("the run is not recognised");
    }
    expect(deaths).toBe(3);
  }
});

test("L7: a run whose loading ends ten processes is loaded again after growing times, and is not lost", async () => {
  const { state, step } = deadlyStep();
  state.isCorrected = true;
  const worker = agent("worker", step);
  const lives = new Lives([worker]);
  lives.changes = (lease) => ({
    ...lease,
    recoveries: 12,
    lostAt: lives.clock.now(),
    lostOwner: { workerId: "w", registration: null, host: null, at: lives.clock.now(), hasEnded: true },
  });
  const at = lives.clock.now();
  const runtime = await lives.last();
  // A claim on submission would not be changed.
  const { runId } = await runtime.submit(worker, null, { startAt: at + 1 });
  await lives.clock.advance(2);
  await until(() => lives.errors.length > 0);
  expect(lives.errors[0]).toMatchObject({ code: "crash_loop", details: { recoveries: 12 } });
  expect(state.entered).toBe(0);
  lives.changes = (lease) => lease;
  await lives.clock.advance(10_000);
  expect((await (await find(runtime, runId)).result()).output).toBe("survived");
});

test("the option crashLoopLimit must be an integer from 1", async () => {
  await expect(createRuntime({ store: "memory:", crashLoopLimit: 0 })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("crashLoopLimit") as string,
  });
});
