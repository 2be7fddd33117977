import { describe, expect, test } from "vitest";
import {
  Fault,
  HistoryRetention,
  type Branch,
  type EventType,
  type HostedAgent,
  type JsonValue,
  type RunContext,
  type RunHandle,
  type Runtime,
  type SpawnOutcome,
  type Store,
  type TaskHandle,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { all } from "../../../src/testing/contracts/store-fixtures.ts";
import { agent, gate, settle, simpleTool, text, until } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

/** Takes signals `news`, then waits for the signal `never`. */
function listener(count: number): Branch<JsonValue> {
  return async (branch) => {
    for (let taken = 0; taken < count; taken++) await branch.waitForSignal("news");
    return (await branch.waitForSignal("never")) ?? null;
  };
}

/** Takes the signal `go`, then fails with a fault that is not recorded before. */
async function failsAtGo(branch: RunContext): Promise<JsonValue> {
  await branch.waitForSignal("go");
  throw new Fault("tool_failed", "no luck");
}

/** Takes the signal `go`, then fails with a fault that a step records. */
async function failsInStep(branch: RunContext): Promise<JsonValue> {
  await branch.waitForSignal("go");
  return branch.step("fail", () => Promise.reject(new Fault("tool_failed", "no luck")));
}

type Branches = Readonly<Record<string, Branch<JsonValue>>>;

/** The constructs that end on the first fault of a branch. */
const constructs: readonly (readonly [string, (ctx: RunContext, branches: Branches) => Promise<unknown>])[] =
  [
    ["ctx.race", (ctx, branches) => ctx.race(branches)],
    ["ctx.parallel with stopOnFault", (ctx, branches) => ctx.parallel(branches, { stopOnFault: true })],
  ];

type Construct = (typeof constructs)[number][1];

/** A branch that fails after the signal `go`, until the world is repaired. */
function failsIn(world: { readonly isBroken: boolean }): Branch<JsonValue> {
  return async (branch) => {
    await branch.waitForSignal("go");
    await branch.step("work", async () => {
      if (world.isBroken) throw new Fault("tool_failed", "no luck");
      return null;
    });
    return (await branch.waitForSignal("repaired")) ?? null;
  };
}

/** Runs a branch that hears the signal `news`, and a branch that fails while the world is broken. */
async function repairable(
  ctx: RunContext,
  run: Construct,
  world: { readonly isBroken: boolean },
): Promise<{ readonly heard: JsonValue; readonly fault?: unknown }> {
  let heard: JsonValue = null;
  const slow: Branch<JsonValue> = async (branch) => {
    heard = (await branch.waitForSignal("news")) ?? null;
    return (await branch.waitForSignal("heard")) ?? null;
  };
  const failing = failsIn(world);
  try {
    await run(ctx, { slow, failing });
    return { heard };
  } catch (fault) {
    return { heard, fault };
  }
}

function spawned(outcome: SpawnOutcome): TaskHandle {
  if (outcome.kind === "refused") throw new Fault("internal", outcome.reason);
  return outcome.handle;
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "none",
    (error: unknown) => Fault.from(error).code,
  );
}

/** Takes all signals `news` that have arrived. */
async function takeNews(ctx: RunContext): Promise<JsonValue[]> {
  const received: JsonValue[] = [];
  for (;;) {
    const value = await ctx.waitForSignal("news", { timeoutMs: 0 });
    if (value === undefined) return received;
    received.push(value);
  }
}

async function sendAll(run: RunHandle, values: readonly JsonValue[]): Promise<void> {
  for (const value of values) await run.signal("news", value);
}

/** Waits until the steps of the run include as many waits for this signal. */
async function untilTaken(store: Store, { runId }: RunHandle, signal: string, count: number): Promise<void> {
  await until(async () => {
    await settle();
    const steps = (await all(store.journal.read(runId))).flatMap((commit) => commit.steps ?? []);
    return steps.filter(({ kind, name }) => kind === "wait" && name === `signal ${signal}`).length >= count;
  });
}

/** Waits until the log of the run has as many events of this type. */
async function untilEvents(
  store: Store,
  { runId }: RunHandle,
  type: EventType,
  count: number,
): Promise<void> {
  await until(async () => {
    await settle();
    return (await all(store.events.read(runId))).filter((event) => event.type === type).length >= count;
  });
}

async function reopen(open: () => Promise<Store>, before: Runtime, worker: HostedAgent): Promise<Runtime> {
  await before.close();
  const runtime = await createRuntime({ store: await open() });
  runtime.register(worker);
  return runtime;
}

describe.each(twoStores)("%s", (_store, prepare) => {
  describe.each(constructs)("%s", (construct, run) => {
    test("W1: signals that an abandoned branch took are received by the next waits, in order, if another branch fails", async () => {
      const open = await prepare();
      const store = await open();
      const runtime = await createRuntime({ store });
      const worker = agent("worker", async (ctx) => [
        await codeOf(run(ctx, { slow: listener(2), failing: failsAtGo })),
        await takeNews(ctx),
      ]);
      const handle = await runtime.submit(worker, null);
      await sendAll(handle, [1, 2, 3]);
      await untilTaken(store, handle, "news", 2);
      await handle.signal("go");
      expect((await handle.result()).output).toEqual(["tool_failed", [1, 2, 3]]);
      await runtime.close();
    });

    test("W1: signals that the failed branch and settled branches took are consumed", async () => {
      const open = await prepare();
      const store = await open();
      const runtime = await createRuntime({ store });
      const worker = agent("worker", async (ctx) => {
        const failing: Branch<JsonValue> = async (branch) => {
          await branch.waitForSignal("news");
          return failsInStep(branch);
        };
        return [await codeOf(run(ctx, { failing, slow: listener(1) })), await takeNews(ctx)];
      });
      const handle = await runtime.submit(worker, null);
      await sendAll(handle, [1, 2]);
      await untilTaken(store, handle, "news", 2);
      await handle.signal("go");
      expect((await handle.result()).output).toEqual(["tool_failed", [2]]);
      await runtime.close();
    });

    test("W1: a signal of an abandoned branch is received once after a restart, before and after the fault", async () => {
      for (const closesBefore of [true, false]) {
        const open = await prepare();
        const store = await open();
        const worker = agent("worker", async (ctx) => {
          const code = await codeOf(run(ctx, { slow: listener(1), failing: failsInStep }));
          await ctx.waitForSignal("proceed");
          return [code, await takeNews(ctx)];
        });
        let runtime = await createRuntime({ store });
        const { runId } = await runtime.submit(worker, null);
        let handle = (await runtime.find(runId)) as RunHandle;
        await sendAll(handle, [1]);
        await untilTaken(store, handle, "news", 1);
        if (!closesBefore) {
          await handle.signal("go");
          await untilTaken(store, handle, "go", 1);
        }
        runtime = await reopen(open, runtime, worker);
        handle = (await runtime.find(runId)) as RunHandle;
        if (closesBefore) await handle.signal("go");
        await sendAll(handle, [2]);
        await handle.signal("proceed");
        expect((await handle.result()).output).toEqual(["tool_failed", [1, 2]]);
        await runtime.close();
      }
    });

    test("E4: an event that the code emits after a branch has failed is in the log while the code is idle, after a restart", async () => {
      const open = await prepare();
      const store = await open();
      const idle = gate();
      const worker = agent("worker", async (ctx) => {
        const code = await codeOf(run(ctx, { slow: listener(1), failing: failsInStep }));
        await ctx.waitForSignal("proceed");
        ctx.emitEvent({ type: "turn_start", data: { turn: 1 } });
        await idle.promise;
        return code;
      });
      let runtime = await createRuntime({ store });
      const { runId } = await runtime.submit(worker, null);
      let handle = (await runtime.find(runId)) as RunHandle;
      await sendAll(handle, [1]);
      await untilTaken(store, handle, "news", 1);
      await handle.signal("go");
      await untilTaken(store, handle, "go", 1);
      runtime = await reopen(open, runtime, worker);
      handle = (await runtime.find(runId)) as RunHandle;
      await handle.signal("proceed");
      const reader = await open();
      await until(async () =>
        (await all(reader.events.read(runId))).some(({ type }) => type === "turn_start"),
      );
      idle.resolve();
      expect((await handle.result()).output).toBe("tool_failed");
      await runtime.close();
      await reader.close();
    });

    test("J5, W1: a branch that runs again in a resumed run keeps the signal that it received, and no other wait receives it", async () => {
      const open = await prepare();
      const store = await open();
      const world = { isBroken: true };
      const worker = agent("worker", async (ctx) => {
        const { heard, fault } = await repairable(ctx, run, world);
        if (fault !== undefined) throw fault;
        return [heard, await takeNews(ctx)];
      });
      let runtime = await createRuntime({ store });
      const { runId } = await runtime.submit(worker, null);
      let handle = (await runtime.find(runId)) as RunHandle;
      await sendAll(handle, [1]);
      await untilTaken(store, handle, "news", 1);
      await handle.signal("go");
      expect((await handle.result()).status).toBe("failed");
      runtime = await reopen(open, runtime, worker);
      world.isBroken = false;
      handle = (await runtime.find(runId)) as RunHandle;
      await handle.resume();
      for (const name of ["heard", "repaired"]) await handle.signal(name);
      expect((await handle.result()).output).toEqual([1, []]);
      await runtime.close();
    });

    test("J5, W1: a branch whose signal other code has received waits for the next signal when the run is resumed", async () => {
      const open = await prepare();
      const store = await open();
      const world = { isBroken: true };
      const worker = agent("worker", async (ctx) => {
        const { heard, fault } = await repairable(ctx, run, world);
        const other = (await ctx.waitForSignal("news")) ?? null;
        if (fault !== undefined) throw fault;
        return [heard, other];
      });
      const runtime = await createRuntime({ store });
      const handle = await runtime.submit(worker, null);
      await sendAll(handle, [1]);
      await untilTaken(store, handle, "news", 1);
      await handle.signal("go");
      expect((await handle.result()).status).toBe("failed");
      world.isBroken = false;
      await handle.resume();
      await sendAll(handle, [2]);
      for (const name of ["heard", "repaired"]) await handle.signal(name);
      expect((await handle.result()).output).toEqual([2, 1]);
      await runtime.close();
    });

    test("C1: the child of an abandoned branch is cancelled, unless it is a child that outlives its parent", async () => {
      const open = await prepare();
      const store = await open();
      const runtime = await createRuntime({ store });
      const idle = agent("idle", async (ctx) => (await ctx.waitForSignal("end")) ?? null);
      const worker = agent(
        "worker",
        async (ctx) => {
          const children: TaskHandle[] = [];
          const slow: Branch<JsonValue> = async (branch) => {
            for (const onParentEnd of ["cancel", "detach"] as const)
              children.push(spawned(await branch.spawn(idle.id, null, { onParentEnd })));
            return (await branch.waitForSignal("never")) ?? null;
          };
          await codeOf(run(ctx, { slow, failing: failsAtGo }));
          const ends = await ctx.joinAll(children);
          return ends.map(({ status }) => status);
        },
        { subAgents: [idle] },
      );
      const handle = await runtime.submit(worker, null);
      await untilEvents(store, handle, "spawn_start", 2);
      await handle.signal("go");
      await settle();
      await handle.signal("end", null, "t2");
      expect((await handle.result()).output).toEqual(["cancelled", "completed"]);
      await runtime.close();
    });

    test("J5: the child of a branch that runs again in a resumed run continues where it stopped", async () => {
      const open = await prepare();
      const store = await open();
      const world = { isBroken: true };
      const steps: string[] = [];
      const child = agent("child", async (ctx) => {
        await ctx.step("first", async () => (steps.push("first"), null));
        return (await ctx.waitForSignal("end")) ?? null;
      });
      const worker = agent(
        "worker",
        async (ctx) => {
          const outputs: JsonValue[] = [];
          const slow: Branch<JsonValue> = async (branch) => {
            outputs.push((await branch.join(spawned(await branch.spawn(child.id, null)))).output);
            return null;
          };
          await run(ctx, { slow, failing: failsIn(world) });
          return outputs;
        },
        { subAgents: [child] },
      );
      let runtime = await createRuntime({ store });
      const { runId } = await runtime.submit(worker, null);
      let handle = (await runtime.find(runId)) as RunHandle;
      await until(() => steps.length === 1);
      await handle.signal("go");
      expect((await handle.result()).status).toBe("failed");
      runtime = await reopen(open, runtime, worker);
      world.isBroken = false;
      handle = (await runtime.find(runId)) as RunHandle;
      await handle.resume();
      await handle.signal("end", "done", "t1");
      const reader = await open();
      await untilEvents(reader, handle, "task_end", 3);
      // The end of the child ends the race.
      if (construct !== "ctx.race") await handle.signal("repaired");
      expect([(await handle.result()).output, steps]).toEqual([["done"], ["first"]]);
      await runtime.close();
      await reader.close();
    });

    test("J1: a replay starts no step of a branch that was abandoned, although its child has ended", async () => {
      const open = await prepare();
      const store = await open();
      const world = { works: 0 };
      const idle = agent("idle", async (ctx) => (await ctx.waitForSignal("never")) ?? null);
      const worker = agent(
        "worker",
        async (ctx) => {
          const slow: Branch<JsonValue> = async (branch) => {
            await branch.join(spawned(await branch.spawn(idle.id, null)));
            return branch.step("work", async () => ++world.works);
          };
          const failing: Branch<JsonValue> = async (branch) => {
            // Many steps, so that a replay reaches the fault after the other branch has joined its child.
            for (let index = 0; index < 20; index++) await branch.now();
            return failsInStep(branch);
          };
          const code = await codeOf(run(ctx, { slow, failing }));
          await ctx.waitForSignal("proceed");
          return code;
        },
        { subAgents: [idle] },
      );
      let runtime = await createRuntime({ store });
      const { runId } = await runtime.submit(worker, null);
      let handle = (await runtime.find(runId)) as RunHandle;
      await untilEvents(store, handle, "spawn_start", 1);
      await handle.signal("go");
      await untilEvents(store, handle, "task_end", 1);
      runtime = await reopen(open, runtime, worker);
      handle = (await runtime.find(runId)) as RunHandle;
      await handle.signal("proceed");
      expect([(await handle.result()).output, world.works]).toEqual(["tool_failed", 0]);
      await runtime.close();
    });

    test("W1: a fork after a branch has failed receives the signal of the abandoned branch once", async () => {
      const open = await prepare();
      const store = await open();
      const runtime = await createRuntime({ store });
      const worker = agent("worker", async (ctx) => {
        const code = await codeOf(run(ctx, { slow: listener(1), failing: failsInStep }));
        const first = (await ctx.waitForSignal("news")) ?? null;
        ctx.emitEvent({ type: "turn_start", data: { turn: 1 } });
        await ctx.step("mark", async () => null);
        return [code, first, await takeNews(ctx)];
      });
      const handle = await runtime.submit(worker, null);
      await sendAll(handle, [1]);
      await untilTaken(store, handle, "news", 1);
      await handle.signal("go");
      expect((await handle.result()).output).toEqual(["tool_failed", 1, []]);
      const events = await all(store.events.read(handle.runId));
      const fork = await handle.fork({ at: events.find(({ type }) => type === "turn_start")?.seq ?? 0 });
      expect((await fork.result()).output).toEqual(["tool_failed", 1, []]);
      await runtime.close();
    });

    test("the state of a run with retention NONE whose branches were abandoned can be read after its end", async () => {
      const open = await prepare();
      const store = await open();
      const runtime = await createRuntime({ store });
      const worker = agent("worker", async (ctx) => [
        await codeOf(run(ctx, { slow: listener(1), failing: failsAtGo })),
        await takeNews(ctx),
      ]);
      const handle = await runtime.submit(worker, null, { retention: HistoryRetention.NONE });
      await sendAll(handle, ["xyzzy"]);
      await untilTaken(store, handle, "news", 1);
      await handle.signal("go");
      expect((await handle.result()).output).toEqual(["tool_failed", ["xyzzy"]]);
      expect((await handle.snapshot()).status).toBe("completed");
      const steps = (await all(store.journal.read(handle.runId))).flatMap((commit) => commit.steps ?? []);
      expect(steps.find(({ kind }) => kind === "abandon")?.outcome).toEqual({
        kind: "ok",
        value: { settled: ["failing"] },
      });
      await runtime.close();
    });

    test("W1: the code after a failed branch reads the steering that an abandoned branch had read", async () => {
      const open = await prepare();
      const store = await open();
      const runtime = await createRuntime({ store });
      const worker = agent("worker", async (ctx) => {
        await ctx.waitForSignal("start");
        const slow: Branch<JsonValue> = async (branch) => {
          await branch.steering({ mode: "all" });
          await branch.waitForSignal("drained");
          return (await branch.waitForSignal("never")) ?? null;
        };
        return [await codeOf(run(ctx, { slow, failing: failsAtGo })), await ctx.steering({ mode: "all" })];
      });
      const handle = await runtime.submit(worker, null);
      await handle.steer("left");
      await handle.signal("start");
      await handle.signal("drained");
      await untilTaken(store, handle, "drained", 1);
      await handle.signal("go");
      expect((await handle.result()).output).toEqual(["tool_failed", ["left"]]);
      await runtime.close();
    });
  });

  test("W1: if the value of the winning branch is not JSON, the race fails and the signals of the losing branch return", async () => {
    const open = await prepare();
    const store = await open();
    const runtime = await createRuntime({ store });
    const worker = agent("worker", async (ctx) => {
      const first: Branch<unknown> = async (branch) => {
        await branch.waitForSignal("go");
        return 1n;
      };
      return [await codeOf(ctx.race<unknown>({ slow: listener(1), first })), await takeNews(ctx)];
    });
    const handle = await runtime.submit(worker, null);
    await sendAll(handle, [1]);
    await untilTaken(store, handle, "news", 1);
    await handle.signal("go");
    expect((await handle.result()).output).toEqual(["not_json", [1]]);
    await runtime.close();
  });

  test("W1: a signal that the body of a tool took before its timeout is received by the next wait", async () => {
    const open = await prepare();
    const store = await open();
    const runtime = await createRuntime({ store });
    const slow = simpleTool({
      name: "slow",
      timeoutMs: 20,
      execute: async (_input, { ctx, signal }) => {
        await ctx.waitForSignal("news");
        await new Promise((_resolve, reject) => signal.addEventListener("abort", reject));
        return text("late");
      },
    });
    const worker = agent(
      "worker",
      async (ctx) => {
        const { isError } = await ctx.tool({ callId: "1", toolName: "slow", input: {} });
        return [isError, await takeNews(ctx)];
      },
      { tools: [slow] },
    );
    const handle = await runtime.submit(worker, null);
    await sendAll(handle, [1]);
    expect((await handle.result()).output).toEqual([true, [1]]);
    await runtime.close();
  });

  test("W1: a signal that reaches a branch at the moment in which another branch ends the race is not lost", async () => {
    const open = await prepare();
    const runtime = await createRuntime({ store: await open() });
    for (let delay = 0; delay < 12; delay++) {
      const worker = agent(`worker${delay}`, async (ctx) => {
        await ctx.waitForSignal("start");
        const { winner } = await ctx.race<JsonValue>({
          fast: async () => {
            for (let tick = 0; tick < delay; tick++) await Promise.resolve();
            return "fast";
          },
          slow: async (branch) => {
            await branch.waitForSignal("news");
            return (await branch.waitForSignal("never")) ?? null;
          },
        });
        return [winner, await takeNews(ctx)];
      });
      const handle = await runtime.submit(worker, null);
      await sendAll(handle, [delay]);
      await handle.signal("start");
      expect((await handle.result()).output).toEqual(["fast", [delay]]);
    }
    await runtime.close();
  });
});
