import { expect, it } from "vitest";
import type { Engine, EnginePort, Event, RunHost, Store } from "../../../src/kernel/index.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { agent, gate, settle, setUp, until } from "../runtime-setup.ts";

/** A clock that fires a due timer before the event loop takes its next turn, as a busy process does. */
class HastyClock extends FakeClock {
  override schedule(atMs: number, callback: () => void): () => void {
    if (atMs > this.now()) return super.schedule(atMs, callback);
    let isCancelled = false;
    const fire = async (): Promise<void> => {
      for (let count = 0; count < 50; count++) await Promise.resolve();
      if (!isCancelled) callback();
    };
    void fire();
    return () => void (isCancelled = true);
  }
}

it("a run that is released at once records what it waits for, also if its timer fires before the wait is recorded", async () => {
  const { runtime } = await setUp({ clock: new HastyClock(), suspendAfterMs: 0 });
  const clerk = agent("clerk", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
  const run = await runtime.submit(clerk, null);
  await run.signal("other", 2);
  await until(async () => (await run.summary()).status === "waiting");
  expect((await run.summary()).waitsFor).toEqual(["signal"]);
  await run.signal("go", 1);
  expect((await run.result()).output).toBe(1);
  await runtime.close();
});

/**
 * Holds the first commit with an event of the given type: the store has written it, and the worker does not know it.
 * Resolves once the commit is held, with a function that releases it.
 */
function holdCommit({ journal }: Store, held: Event["type"]): Promise<() => void> {
  const append = journal.append.bind(journal);
  return new Promise((resolve) => {
    journal.append = async (lease, commit, submissions) => {
      const stored = await append(lease, commit, submissions);
      if (commit.events?.some(({ type }) => type === held) !== true) return stored;
      journal.append = append;
      const { promise, resolve: letGo } = Promise.withResolvers<void>();
      resolve(letGo);
      await promise;
      return stored;
    };
  });
}

it("a run that continues while its release is written keeps the steps of its code and wakes at its new time", async () => {
  const { clock, runtime, store } = await setUp({ suspendAfterMs: 0 });
  const held = holdCommit(store, "task_suspend");
  let signals = 0;
  const clerk = agent("clerk", async (ctx) => {
    await ctx.waitForSignal("go");
    signals++;
    return (await ctx.waitForSignal("answer", { timeoutMs: 1000 })) ?? "awake";
  });
  const run = await runtime.submit(clerk, null);
  await clock.advance(1);
  const letGo = await held;
  // The timer releases the run, and the mail arrives while the commit of the release is still written.
  await clock.advance(1);
  await run.signal("go", 1);
  await until(() => signals === 1);
  await settle();
  letGo();
  await until(async () => (await run.summary()).waitsFor.includes("time"));
  await clock.advance(2000);
  expect((await run.result()).output).toBe("awake");
  await runtime.close();
});

/** Executes each run as soon as it hears of it. The test ends the executions through `slice`. */
class SliceEngine implements Engine {
  readonly kind = "slices";
  slice = new AbortController();
  /** Whether the engine executes nothing for now. */
  isPaused = false;
  readonly #port: EnginePort;
  #host: RunHost | undefined;

  constructor(port: EnginePort) {
    this.#port = port;
  }

  async start(host: RunHost): Promise<void> {
    const { leases, workerId, onError } = this.#port;
    await leases.enlist(workerId, { onLost: onError });
    this.#host = host;
  }

  wake(): void {
    if (this.isPaused) return;
    this.#drive().catch(this.#port.onError);
  }

  agentsChanged(): void {
    this.wake();
  }

  async stop(): Promise<void> {
    await this.#port.leases.dismiss(this.#port.workerId);
  }

  async #drive(): Promise<void> {
    const { leases, workerId, clock, agents } = this.#port;
    const [lease] = await leases.claim({ workerId, limit: 1, now: clock.now(), agents: agents() });
    if (lease === undefined) return;
    const { rest, isReleased } = (await this.#host?.drive(lease, { signal: this.slice.signal })) ?? {};
    if (rest !== undefined && isReleased === false) await leases.release(lease, rest);
  }
}

it("a task that wakes while its worker drains and releases the run continues in the next execution", async () => {
  let engine: SliceEngine | undefined;
  const { clock, runtime, store } = await setUp({
    engine: (port) => (engine = new SliceEngine(port)),
  });
  const held = holdCommit(store, "task_suspend");
  let letGo: (() => void) | undefined;
  const clerk = agent("clerk", async (ctx) => {
    await ctx.sleep(1000);
    const work = ctx.step("work", async () => "done");
    letGo?.();
    return work;
  });
  const run = await runtime.submit(clerk, null);
  await settle();
  engine?.slice.abort();
  letGo = await held;
  await settle();
  if (engine !== undefined) engine.slice = new AbortController();
  await clock.advance(1000);
  await settle();
  engine?.wake();
  expect((await run.result()).output).toBe("done");
  await runtime.close();
});

it("a task whose restart is due while its worker drains and releases the run starts in the next execution", async () => {
  let engine: SliceEngine | undefined;
  const { clock, runtime, store } = await setUp({
    engine: (port) => (engine = new SliceEngine(port)),
    runRetry: { baseDelayMs: 1000 },
  });
  const held = holdCommit(store, "task_retry");
  let executions = 0;
  const clerk = agent("clerk", async () => {
    if (executions++ === 0) throw new Error("not yet");
    return "done";
  });
  const run = await runtime.submit(clerk, null);
  const letGo = await held;
  engine?.slice.abort();
  await settle();
  await clock.advance(1000);
  letGo();
  await settle();
  if (engine !== undefined) engine.slice = new AbortController();
  engine?.wake();
  expect((await run.result()).output).toBe("done");
  await runtime.close();
});

it("a branch that a draining worker stops before its next call continues after the next owner was lost", async () => {
  let engine: SliceEngine | undefined;
  const { clock, runtime, store } = await setUp({
    engine: (port) => (engine = new SliceEngine(port)),
  });
  const effect = gate();
  const done: string[] = [];
  const clerk = agent("clerk", async (ctx) => {
    await ctx.parallel({
      long: (own) => own.sleep(3_600_000),
      short: async (own) => {
        await own.step("first", async () => effect.promise.then(() => null));
        await own.step("second", async () => done.push("second"));
      },
    });
  });
  const run = await runtime.submit(clerk, null);
  await settle();
  if (engine === undefined) throw new Error("the engine was not created");
  engine.isPaused = true;
  engine.slice.abort();
  effect.resolve();
  await settle();
  engine.isPaused = false;
  engine.slice = new AbortController();
  const lost = { workerId: "lost", limit: 1, now: clock.now() };
  await store.leases.enlist(lost.workerId);
  expect((await store.leases.claim(lost)).map(({ runId }) => runId)).toEqual([run.runId]);
  await store.leases.dismiss(lost.workerId);
  engine.wake();
  await until(() => done.length === 1);
  await settle();
  await clock.advance(3_600_000);
  engine.wake();
  expect((await run.result()).status).toBe("completed");
  await runtime.close();
});
