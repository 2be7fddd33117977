// Needs `npm ci` with development packages: it starts the PostgreSQL and the Restate server of the tests.
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { openRuntime, sha256, type Runtime } from "reeve";
import { formatAgentId, type HostedAgent, type Store } from "reeve/kernel";
import { sqliteStore } from "reeve/sqlite";
import { object, workflow, type Workflow } from "reeve/workflow";
import { cpuMs } from "./cpu-time.ts";
import { failedRow, median, type Row } from "./row.ts";
import { kilobyte } from "./scale-steps.ts";
import { peers, type Peer } from "./workflow-peers.ts";

/** Many short rounds that alternate, so that both sides meet the same disturbances. */
const rounds = 25;
const warmUp = 5;
/** Number of sleeping workflows before those that are measured. */
const firstSleepers = 2_000;
/** Number of runs at once, and of the steps of each. */
const sizes = [
  [1, 400],
  [32, 50],
] as const;

/**
 * What durable functions cost on SQLite: steps against those of a hosted agent and of other engines, sleeping runs, signals, and
 * calls of objects.
 */
export async function* rows(): AsyncIterable<Row> {
  const folder = mkdtempSync(join(tmpdir(), "reeve-workflow-"));
  try {
    yield* steps(folder);
    yield* signals(folder);
    yield* objects(folder);
    yield* besidePeers(folder);
    yield* sleeping(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function open(folder: string, name: string): Promise<Store> {
  return sqliteStore({ path: join(folder, `${name}.db`), hash: sha256, durability: "normal" });
}

const worker: Workflow<number, string> = workflow("work", async (ctx, each): Promise<string> => {
  for (let index = 0; index < Number(each); index++) await ctx.step("work", () => kilobyte);
  return "done";
});

const agent: HostedAgent = {
  id: formatAgentId({ name: "working-agent" }),
  run: async (ctx) => {
    for (let index = 0; index < Number(ctx.input); index++) await ctx.step("work", async () => kilobyte);
    return "done";
  },
};

/** Steps per second of so many runs at once, from their start to the last end. */
async function stepsPerSecond(runs: number, each: number, run: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await Promise.all(Array.from({ length: runs }, run));
  return (runs * each) / ((performance.now() - began) / 1_000);
}

const ofWorkflow = (runtime: Runtime, runs: number, each: number): Promise<number> =>
  stepsPerSecond(runs, each, () => worker.run(each, { runtime }));

/** Processor time of a step, because the rounds of a shared machine wait for others. Then steps per second. */
async function* steps(folder: string): AsyncIterable<Row> {
  for (const [runs, each] of sizes) {
    const runtime = await openRuntime({ store: await open(folder, `steps-${runs}`) });
    const ofAgent = (): Promise<number> =>
      stepsPerSecond(runs, each, async () => (await runtime.submit(agent, each)).result());
    const [ours, floor, speed]: [number[], number[], number[]] = [[], [], []];
    const perStep = async (work: () => Promise<number>): Promise<number> =>
      ((await cpuMs(work)) * 1_000) / (runs * each);
    for (let round = 0; round <= rounds; round++) {
      ours.push(await perStep(async () => speed.push(await ofWorkflow(runtime, runs, each))));
      floor.push(await perStep(ofAgent));
    }
    await runtime.close();
    yield {
      name: `processor time of a step of 1 KB, ${many(runs)}, against ctx.step of an agent`,
      // The first rounds compile the code.
      value: median(ours.slice(warmUp)),
      unit: "us",
      against: median(floor.slice(warmUp)),
      goal: { atMost: 1.05 },
    };
    yield {
      name: `steps of 1 KB, ${many(runs)}`,
      value: median(speed.slice(warmUp)),
      unit: "steps/s",
      against: null,
      goal: null,
    };
  }
}

/** Signals per second that a workflow receives one after the other, against its steps. */
async function* signals(folder: string): AsyncIterable<Row> {
  const count = 500;
  const runtime = await openRuntime({ store: await open(folder, "signals") });
  const receiver = workflow("receiver", async (ctx) => {
    for (let index = 0; index < count; index++) await ctx.waitForSignal("next");
  });
  const [received, stepped]: [number[], number[]] = [[], []];
  for (let round = 0; round <= 5; round++) {
    const run = await runtime.start(receiver, null);
    const began = performance.now();
    await Promise.all(Array.from({ length: count }, (_, index) => run.signal("next", index)));
    await run.result();
    received.push(count / ((performance.now() - began) / 1_000));
    stepped.push(await ofWorkflow(runtime, 1, count));
  }
  await runtime.close();
  yield {
    name: "signals that a workflow receives, against its steps",
    value: median(received.slice(1)),
    unit: "signals/s",
    against: median(stepped.slice(1)),
    goal: null,
  };
}

/** Calls of one key of an object, of which all but one wait, against calls of as many keys, which wait for none. */
async function* objects(folder: string): AsyncIterable<Row> {
  const runtime = await openRuntime({ store: await open(folder, "objects") });
  const counter = object(
    "counter",
    { state: { type: "integer", default: 0 } as const },
    {
      add: async (ctx, by: number) => {
        ctx.setState(ctx.state + by);
        return ctx.state;
      },
    },
  );
  const perCall = async (count: number, keyOf: (index: number) => string): Promise<number> => {
    const spent = await cpuMs(async () => {
      const sent = Array.from({ length: count }, (_, index) =>
        runtime.object(counter, keyOf(index)).send.add(1),
      );
      for (const run of await Promise.all(sent)) await run.result();
    });
    return (spent * 1_000) / count;
  };
  for (const waiting of [100, 1_000]) {
    const [queued, free]: [number[], number[]] = [[], []];
    for (let round = 0; round <= 3; round++) {
      queued.push(await perCall(waiting, () => `${waiting} ${round}`));
      free.push(await perCall(waiting, (index) => `${waiting} ${round} ${index}`));
    }
    yield {
      name: `processor time of a call of an object, ${waiting} waiting at one key, against ${waiting} keys`,
      value: median(queued.slice(1)),
      unit: "us",
      against: median(free.slice(1)),
      goal: { atMost: 2 },
    };
  }
  await runtime.close();
}

/** Steps per second on SQLite against those of another engine, in alternating rounds. */
async function* besidePeers(folder: string): AsyncIterable<Row> {
  for (const [name, openPeer] of Object.entries(peers)) {
    const title = (runs: number): string => `steps of 1 KB, ${many(runs)}, against ${name}`;
    let peer: Peer;
    try {
      peer = await openPeer();
    } catch (error) {
      for (const [runs] of sizes) yield failedRow(title(runs), "steps/s", (error as Error).message);
      continue;
    }
    const runtime = await openRuntime({ store: await open(folder, name) });
    try {
      for (const [runs, each] of sizes) yield await beside(title(runs), peer, runtime, [runs, each]);
    } finally {
      await runtime.close();
      await peer.close();
    }
  }
}

async function beside(
  name: string,
  peer: Peer,
  runtime: Runtime,
  [runs, each]: readonly [number, number],
): Promise<Row> {
  const [ours, theirs]: [number[], number[]] = [[], []];
  for (let round = 0; round <= 5; round++) {
    ours.push(await ofWorkflow(runtime, runs, each));
    theirs.push(await peer.steps(runs, each));
  }
  return {
    name,
    value: median(ours.slice(1)),
    unit: "steps/s",
    against: median(theirs.slice(1)),
    goal: { atLeast: 1 },
  };
}

async function* sleeping(folder: string): AsyncIterable<Row> {
  const count = Number(process.env["REEVE_BENCH_RUNS"] ?? 100_000);
  const store = await open(folder, "sleeping");
  const runtime = await openRuntime({ store, suspendAfterMs: 1, concurrency: 256 });
  const sleeper = workflow("sleeper", async (ctx) => {
    await ctx.step("prepare", () => "ready");
    await ctx.sleep("30 days");
  });
  const fallAsleep = async (runs: number): Promise<void> => {
    for (let done = 0; done < runs; done += 1_000) {
      await Promise.all(
        Array.from({ length: Math.min(1_000, runs - done) }, () => runtime.start(sleeper, null)),
      );
      while ((await runtime.count({ status: ["pending", "running"], limit: 1 })) > 0) await pause(5);
    }
  };
  // The first runs compile the code and fill caches, which are 4 MB whatever the number of runs.
  await fallAsleep(firstSleepers);
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  const began = performance.now();
  await fallAsleep(count);
  const perSecond = count / ((performance.now() - began) / 1_000);
  globalThis.gc?.();
  const after = process.memoryUsage().heapUsed;
  await runtime.close();
  const name = "a sleeping workflow";
  const size = statSync(join(folder, "sleeping.db")).size / (firstSleepers + count);
  yield {
    name: `${name} on disk (${count} of them)`,
    value: size,
    unit: "bytes",
    against: null,
    goal: { atMost: 3_072 },
  };
  yield {
    name: `${name} in the process`,
    value: Math.max(0, after - before) / count,
    unit: "bytes",
    against: null,
    goal: { atMost: 64 },
  };
  yield {
    name: "workflows that start, do a step and fall asleep",
    value: perSecond,
    unit: "runs/s",
    against: null,
    goal: null,
  };
}

function many(runs: number): string {
  return runs === 1 ? "1 workflow" : `${runs} workflows at once`;
}
