import {
  Fault,
  formatAgentId,
  type DriveResult,
  type EngineFactory,
  type EnginePort,
  type HostedAgent,
  type JsonValue,
  type Lease,
  type RunContext,
  type RunHost,
  type Runtime,
  type Store,
} from "../../../kernel/index.ts";
import { dyingStore } from "../../dying-store.ts";
import type { EngineHarness } from "./engine-world.ts";
import { attemptCases } from "./attempt-cases.ts";
import { programCases } from "./program-cases.ts";
import { topUpCases } from "./top-up-cases.ts";
import { compensationCases } from "./compensation-cases.ts";
import { lifeCases } from "./life-cases.ts";
import { limitCases } from "./limit-cases.ts";
import { upgradeCases } from "./upgrade-cases.ts";
import { inputCases } from "./input-cases.ts";
import { waitCases } from "./wait-cases.ts";
import { branchCases, callCases, partCases } from "./call-cases.ts";
import { clientCases } from "./client-cases.ts";
import { flowCases } from "./flow-cases.ts";
import { objectCases } from "./object-cases.ts";
import { settingsCases } from "./settings-cases.ts";
import { restartCases, retryCases, signalCases, timeCases, workflowCases } from "./workflow-cases.ts";
import { messageCases, promiseCases } from "./message-cases.ts";

/** Tests of the rules that every engine and every host of runs must keep. */
export function engineContract(harness: EngineHarness): void {
  ownershipCases(harness);
  waitCases(harness);
  inputCases(harness);
  limitCases(harness);
  lifeCases(harness);
  retryCases(harness);
  restartCases(harness);
  timeCases(harness);
  signalCases(harness);
  messageCases(harness);
  promiseCases(harness);
  workflowCases(harness);
  compensationCases(harness);
  callCases(harness);
  branchCases(harness);
  partCases(harness);
  upgradeCases(harness);
  flowCases(harness);
  settingsCases(harness);
  clientCases(harness);
  objectCases(harness);
  attemptCases(harness);
  programCases(harness);
  topUpCases(harness);
}

/** Cases about G1 to G5: which worker executes a run, and when. */
function ownershipCases({ test, expect, engine, prepare, open }: EngineHarness): void {
  const agent = (name: string, run: (ctx: RunContext) => Promise<JsonValue>): HostedAgent => ({
    id: formatAgentId({ name }),
    run,
  });

  const outputOf = async (runtime: Runtime, runId: string): Promise<JsonValue> => {
    const run = await runtime.find(runId);
    return (await run?.result())?.output ?? null;
  };

  test("G2: a submitted run is executed to its end", async () => {
    const runtime = await open(await (await prepare())(), engine, "one");
    const worker = agent("worker", async (ctx) => ctx.step("work", async () => "done"));
    const runs = await Promise.all(Array.from({ length: 5 }, () => runtime.submit(worker, null)));
    const results = await Promise.all(runs.map((run) => run.result()));
    expect(results.map(({ output }) => output)).toEqual(Array(5).fill("done"));
    await runtime.close();
  });

  test("G2: a message to an agent does not wait until the full inbox of another agent is empty", async () => {
    const reopen = await prepare();
    const store = await reopen();
    const flood = 20;
    const { promise: all, resolve: haveStarted } = Promise.withResolvers<void>();
    let started = 0;
    const reader = (name: string): HostedAgent =>
      agent(name, async () => (++started > flood && haveStarted(), null));
    const [flooded, quiet] = [reader("flooded"), reader("quiet")];
    const send = (to: HostedAgent, index: number): Promise<boolean> => {
      const from = formatAgentId({ name: `sender-${index}` });
      return store.inbox.deliver({ id: `m${index}`, from, to: to.id, body: null, sentAt: 1 });
    };
    for (let index = 0; index < flood; index++) await send(flooded, index);
    await send(quiet, flood);
    await store.close();
    const runtime = await open(await reopen(), engine, "one");
    // Both agents at once, so that the first round knows both.
    runtime.register({ ...flooded, subAgents: [quiet] });
    await all;
    const { runs } = await runtime.list();
    const earlier = runs.slice(runs.findIndex(({ agentId }) => agentId === quiet.id) + 1);
    expect([runs.length, earlier.length < flood]).toEqual([flood + 1, true]);
    await runtime.close();
  });

  test("G2: two workers that share the full inbox of an agent seldom try to take the same message", async () => {
    const reopen = await prepare();
    const flood = 40;
    const { promise: all, resolve: haveStarted } = Promise.withResolvers<void>();
    let [started, lost] = [0, 0];
    const reader = agent("flooded", async () => (++started === flood && haveStarted(), null));
    /** Wraps a store to count the claims at which another worker was faster. */
    const counting = (store: Store): Store => {
      const create: Store["journal"]["create"] = async (...args) => {
        const creation = await store.journal.create(...args);
        if (creation.kind !== "created") lost++;
        return creation;
      };
      const journal = new Proxy(store.journal, {
        get: (target, name) => {
          const member: unknown = Reflect.get(target, name);
          if (name === "create") return create;
          return typeof member === "function" ? member.bind(target) : member;
        },
      });
      return { ...store, journal };
    };
    const runtimes = [
      await open(counting(await reopen()), engine, "one"),
      await open(counting(await reopen()), engine, "two"),
    ];
    const store = await reopen();
    for (let index = 0; index < flood; index++) {
      const from = formatAgentId({ name: `sender-${index}` });
      await store.inbox.deliver({ id: `m${index}`, from, to: reader.id, body: null, sentAt: 1 });
    }
    await store.close();
    for (const runtime of runtimes) runtime.register(reader);
    await all;
    // Workers that try the messages in one order lose as many attempts as there are messages.
    expect(lost < flood / 2).toBe(true);
    for (const runtime of runtimes) await runtime.close();
  });

  test("G2: mail wakes a run that waits for a signal", async () => {
    const runtime = await open(await (await prepare())(), engine, "one");
    const worker = agent("worker", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
    const run = await runtime.submit(worker, null);
    await run.signal("go", 7);
    expect((await run.result()).output).toBe(7);
    await runtime.close();
  });

  test("G2: a run that sleeps is woken at its time", async () => {
    const runtime = await open(await (await prepare())(), engine, "one");
    const worker = agent("worker", async (ctx) => {
      await ctx.sleep(5);
      return "woken";
    });
    expect((await (await runtime.submit(worker, null)).result()).output).toBe("woken");
    await runtime.close();
  });

  test("G2: a parent is woken by the end of its child", async () => {
    const runtime = await open(await (await prepare())(), engine, "one");
    const child = agent("child", async (ctx) => ctx.step("work", async () => "of the child"));
    const parent: HostedAgent = {
      ...agent("parent", async (ctx) => {
        const spawned = await ctx.spawn(child.id, null);
        return spawned.kind === "spawned" ? (await ctx.join(spawned.handle)).output : "refused";
      }),
      subAgents: [child],
    };
    expect((await (await runtime.submit(parent, null)).result()).output).toBe("of the child");
    await runtime.close();
  });

  test("G2: a fork with an input at the end of its origin is executed to its end", async () => {
    const store = await (await prepare())();
    const runtime = await open(store, engine, "one");
    const worker = agent("worker", async (ctx) => {
      const [input = ctx.input] = await ctx.steering();
      if (input === "fails") throw new Fault("invalid_argument", "no such work");
      return input;
    });
    for (const [input, status] of [
      ["works", "completed"],
      ["fails", "failed"],
    ] as const) {
      const origin = await runtime.submit(worker, input);
      expect((await origin.result()).status).toBe(status);
      const fork = await origin.fork({ at: await store.events.lastSeq(origin.runId), input: "again" });
      expect((await fork.result()).output).toBe("again");
    }
    await runtime.close();
  });

  test("G2: a run whose agent is registered later is executed after the registration", async () => {
    const opens = await prepare();
    const worker = agent("worker", async () => "done");
    const { engine: idle } = capturingEngine("idle");
    const store = await opens();
    const kind = engine(portOf(store)).kind;
    const one = await open(store, (port) => ({ ...idle(port), kind }), "one");
    const { runId } = await one.submit(worker, null);
    await one.close();
    const two = await open(await opens(), engine, "two");
    two.register(worker);
    expect(await outputOf(two, runId)).toBe("done");
    await two.close();
  });

  test("G1: if several workers share a store, exactly one of them executes each step of a run", async () => {
    const opens = await prepare();
    const counts = new Map<string, number>();
    const worker = (): HostedAgent =>
      agent("worker", async (ctx) =>
        ctx.step("work", async () => {
          const { runId } = ctx.facts;
          counts.set(runId, (counts.get(runId) ?? 0) + 1);
          return "done";
        }),
      );
    const hosted = worker();
    const runtimes = [await open(await opens(), engine, "one"), await open(await opens(), engine, "two")];
    for (const runtime of runtimes) runtime.register(hosted);
    const runs = await Promise.all(
      Array.from({ length: 10 }, (_, index) => (runtimes[index % 2] as Runtime).submit(hosted, null)),
    );
    for (const run of runs) expect((await run.result()).output).toBe("done");
    for (const runtime of runtimes) await runtime.close();
    expect([...counts.values()]).toEqual(Array(10).fill(1));
  });

  test("G2: the next worker resumes the run of a worker that died and repeats no recorded step", async () => {
    const opens = await prepare();
    const calls: string[] = [];
    const worker = (): HostedAgent =>
      agent("worker", async (ctx) => {
        for (const name of ["a", "b", "c"]) await ctx.step(name, async () => (calls.push(name), name));
        return "done";
      });
    const died = Promise.withResolvers<undefined>();
    const real = await opens();
    const mortal = dyingStore(real, { at: 5, when: "after", die: () => died.resolve(undefined) });
    // In this process the code of the dead worker goes on, so no engine may give it work: it is a group of its own.
    const submitted = open(mortal, engine, "one", { group: "dead" }).then((runtime) =>
      runtime.submit(worker(), null),
    );
    await Promise.race([submitted, died.promise]);
    await died.promise;
    const before = [...calls];
    const [{ runId } = { runId: "" }] = (await real.journal.list({})).runs;
    await real.leases.dismiss("one");
    const two = await open(await opens(), engine, "two");
    two.register(worker());
    expect(await outputOf(two, runId)).toBe("done");
    // At most the call in flight is repeated (J6).
    expect(calls.length <= 3 + 1 && before.length <= 3).toBe(true);
    expect(new Set(calls).size).toBe(3);
    await two.close();
  });

  test("G3: an engine that stops waits for the open call, so that the next worker does not repeat it", async () => {
    const opens = await prepare();
    const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let calls = 0;
    const worker = (): HostedAgent =>
      agent("worker", async (ctx) => {
        const value = await ctx.step("slow", async () => {
          calls++;
          begun.resolve();
          await released.promise;
          return "slow";
        });
        await ctx.waitForSignal("go");
        return value;
      });
    const one = await open(await opens(), engine, "one");
    const { runId } = await one.submit(worker(), null);
    await begun.promise;
    const closing = one.close();
    released.resolve();
    await closing;
    const two = await open(await opens(), engine, "two");
    two.register(worker());
    await (await two.find(runId))?.signal("go");
    expect([await outputOf(two, runId), calls]).toEqual(["slow", 1]);
    await two.close();
  });

  test("G4: a call that is open during three executions is made once, and its result is recorded", async () => {
    const store = await (await prepare())();
    const { engine: captured, host, port } = capturingEngine("captured");
    const runtime = await open(store, captured, "one");
    const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const calls: string[] = [];
    const worker = agent("worker", async (ctx) => {
      await ctx.step("slow", async () => {
        calls.push("slow");
        begun.resolve();
        await released.promise;
        return null;
      });
      await ctx.step("next", async () => (calls.push("next"), null));
      return "done";
    });
    const run = await runtime.submit(worker, null);
    const slice = new AbortController();
    const driving = driveOnce(port(), host(), slice.signal);
    await begun.promise;
    slice.abort();
    released.resolve();
    expect((await driving)?.rest).toEqual({ kind: "ready" });
    expect(calls).toEqual(["slow"]);
    const second = new AbortController();
    second.abort();
    expect((await driveOnce(port(), host(), second.signal))?.rest).toEqual({ kind: "ready" });
    expect(calls).toEqual(["slow"]);
    await driveOnce(port(), host());
    expect(calls).toEqual(["slow", "next"]);
    expect((await run.result()).output).toBe("done");
    await runtime.close();
  });

  test("G4: an execution of a run that only waits ends as suspended when its signal aborts", async () => {
    const store = await (await prepare())();
    const { engine: captured, host, port } = capturingEngine("captured");
    const runtime = await open(store, captured, "one");
    const waits = Promise.withResolvers<void>();
    const worker = agent("worker", async (ctx) => {
      await ctx.step("first", async () => (waits.resolve(), null));
      return (await ctx.waitForSignal("go")) ?? null;
    });
    const run = await runtime.submit(worker, null);
    const slice = new AbortController();
    const isIdle = Promise.withResolvers<void>();
    const driving = driveOnce(port(), host(), slice.signal, (idle) => idle && isIdle.resolve());
    await waits.promise;
    await isIdle.promise;
    slice.abort();
    expect((await driving)?.rest).toEqual({ kind: "suspended", wakeAt: null });
    expect(await driveOnce(port(), host())).toBeUndefined();
    await run.signal("go", 1);
    await driveOnce(port(), host());
    expect((await run.result()).output).toBe(1);
    await runtime.close();
  });

  test("G5: a store whose runs are executed by one kind of engine refuses another kind, and the error names both", async () => {
    const opens = await prepare();
    const runtime = await open(await opens(), engine, "one");
    const { engine: other } = capturingEngine("other");
    await expect(open(await opens(), other, "two")).rejects.toMatchObject({
      code: "engine_mismatch",
      details: { engine: "other" },
    });
    await runtime.close();
    const again = await open(await opens(), engine, "three");
    await again.close();
  });

  test("G5: an engine with an invalid kind is refused", async () => {
    const opens = await prepare();
    const { engine: nameless } = capturingEngine("No Name");
    await expect(open(await opens(), nameless, "one")).rejects.toMatchObject({ code: "invalid_argument" });
  });
}

/** Returns an engine that executes nothing by itself. The test executes runs through its port and host. */
function capturingEngine(kind: string): {
  readonly engine: EngineFactory;
  readonly host: () => RunHost;
  readonly port: () => EnginePort;
} {
  let host: RunHost | undefined;
  let port: EnginePort | undefined;
  return {
    engine: (given) => {
      port = given;
      return {
        kind,
        start: async (driver) => {
          host = driver;
          await given.leases.enlist(given.workerId);
        },
        wake: () => undefined,
        agentsChanged: () => undefined,
        stop: () => given.leases.dismiss(given.workerId),
      };
    },
    host: () => required(host),
    port: () => required(port),
  };
}

function required<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Fault("internal", "the engine was not started");
  return value;
}

/** Claims a ready run, executes it once and releases it. */
async function driveOnce(
  { leases, workerId, clock }: EnginePort,
  host: RunHost,
  signal?: AbortSignal,
  onIdle: (isIdle: boolean) => void = () => undefined,
): Promise<DriveResult | undefined> {
  const [lease] = await leases.claim({ workerId, limit: 1, now: clock.now() });
  if (lease === undefined) return undefined;
  const result = await host.drive(lease, signal === undefined ? { onIdle } : { signal, onIdle });
  await releaseAfter(leases, lease, result);
  return result;
}

async function releaseAfter(
  leases: EnginePort["leases"],
  lease: Lease,
  { rest, isReleased }: DriveResult,
): Promise<void> {
  if (!isReleased) await leases.release(lease, rest);
}

const none = (): void => undefined;

/** A port with which an engine can be created but not started. */
function portOf(store: Store): EnginePort {
  return {
    leases: store.leases,
    clock: { now: () => 0, schedule: () => () => undefined },
    eventLoop: { soon: none, whenBlocked: none, nextTurn: none, elapsed: () => 0 },
    workerId: "none",
    host: "here",
    concurrency: 1,
    pollMs: 1,
    agents: () => [],
    onError: () => undefined,
  };
}
