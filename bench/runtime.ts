import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openRuntime, sha256 } from "reeve";
import { formatAgentId, type HostedAgent, type Runtime, type Store } from "reeve/kernel";
import { sqliteStore } from "reeve/sqlite";
import { cpuMs } from "./cpu-time.ts";
import { median, type Row } from "./row.ts";
import { turnRows } from "./turn-time.ts";

const rounds = 7;
/** About 1 KB of JSON. */
const kilobyte = { text: "x".repeat(1_000) };

/** Each row against a floor in the same run: machines are shared, so only ratios mean something. */
export async function* rows(): AsyncIterable<Row> {
  const folder = mkdtempSync(join(tmpdir(), "reeve-bench-"));
  try {
    yield* turnRows("durable turn (model + tool)", 4, { bare: "bare-sqlite", ours: "sqlite" });
    yield* steps(folder);
    yield* replay(folder);
    yield* suspended(folder);
    yield* watchers(folder);
    yield* stalls(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function open(path: string): Promise<Store> {
  return sqliteStore({ path, hash: sha256, durability: "normal" });
}

function stepAgent(name: string, count: number): HostedAgent {
  return {
    id: formatAgentId({ name }),
    run: async (ctx) => {
      for (let index = 0; index < count; index++) await ctx.step("work", async () => kilobyte);
      return "done";
    },
  };
}

/** Steps per second of so many runs at once, against raw inserts of the same bytes: alone, or in groups of as many. */
async function* steps(folder: string): AsyncIterable<Row> {
  const count = 400;
  for (const runs of [1, 32]) {
    const path = join(folder, `steps-${runs}.db`);
    const runtime = await openRuntime({ store: await open(path) });
    const agent = stepAgent("steps", count);
    const ours: number[] = [];
    const floor: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const each = runs === 1 ? count : Math.ceil(count / 4);
      const worker = runs === 1 ? agent : stepAgent(`steps-${round}`, each);
      ours.push(await timeSteps(runtime, worker, runs, each));
      floor.push(rawInserts(join(folder, `raw-${runs}-${round}.db`), runs * each, runs));
    }
    await runtime.close();
    yield {
      name: `durable steps of 1 KB, ${runs} run${runs === 1 ? "" : "s"} at once, against raw ${runs === 1 ? "commits" : "grouped inserts"}`,
      value: median(ours.slice(1)),
      unit: "steps/s",
      against: median(floor.slice(1)),
      goal: { atLeast: 0.6 },
    };
  }
}

async function timeSteps(runtime: Runtime, agent: HostedAgent, runs: number, each: number): Promise<number> {
  const started = performance.now();
  const handles = await Promise.all(Array.from({ length: runs }, () => runtime.submit(agent, null)));
  await Promise.all(handles.map((run) => run.result()));
  return (runs * each) / ((performance.now() - started) / 1_000);
}

function rawInserts(path: string, count: number, group: number): number {
  const db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
  db.exec("CREATE TABLE c(run INTEGER, number INTEGER, body TEXT, PRIMARY KEY(run, number)) WITHOUT ROWID");
  const insert = db.prepare("INSERT INTO c VALUES (?, ?, ?)");
  const body = JSON.stringify({ steps: [{ a: "0", k: "step", n: "work", v: kilobyte }] });
  const started = performance.now();
  for (let done = 0; done < count; done += group) {
    if (group > 1) db.exec("BEGIN");
    for (let run = 0; run < group && done + run < count; run++) insert.run(run, done, body);
    if (group > 1) db.exec("COMMIT");
  }
  const rate = count / ((performance.now() - started) / 1_000);
  db.close();
  return rate;
}

/** A run of 10,000 recorded steps waits for a signal; a new runtime replays it up to there. Against reading and parsing its rows. */
async function* replay(folder: string): AsyncIterable<Row> {
  const count = 10_000;
  const path = join(folder, "replay.db");
  const agent = (onReached: () => void): HostedAgent => ({
    id: formatAgentId({ name: "long" }),
    run: async (ctx) => {
      for (let index = 0; index < count; index++) await ctx.step("work", async () => kilobyte);
      onReached();
      await ctx.waitForSignal("go");
      return "done";
    },
  });
  const first = await openRuntime({ store: await open(path), suspendAfterMs: 1 });
  const run = await first.submit(
    agent(() => undefined),
    null,
  );
  await untilSuspended(path, count);
  await first.close();
  const floor: number[] = [];
  const ours: number[] = [];
  for (let round = 0; round < 3; round++) {
    // Each round uses a new store and a new runtime. The last round lets the run end.
    floor.push(await cpuMs(() => readBare(path)));
    const again = await openRuntime({ store: await open(path), suspendAfterMs: 1 });
    const handle = await again.find(run.runId);
    if (handle === undefined) throw new Error("the run is gone");
    const reached = Promise.withResolvers<void>();
    ours.push(
      await cpuMs(async () => {
        again.register(agent(reached.resolve));
        await handle.signal(round === 2 ? "go" : "not yet");
        await reached.promise;
      }),
    );
    await again.close();
  }
  yield {
    name: "replay of 10,000 steps of 1 KB, against reading the rows bare",
    value: median(ours),
    unit: "ms",
    against: median(floor),
    goal: { atMost: 2.5 },
  };
}

function readBare(path: string): void {
  const db = new DatabaseSync(path, { readOnly: true });
  let bytes = 0;
  for (const { body } of db.prepare("SELECT body FROM commits").iterate() as Iterable<{ body: string }>) {
    bytes += body.length;
    JSON.parse(body);
  }
  if (bytes === 0) throw new Error("there was nothing to read");
  db.close();
}

/** Waits until the store has this many commits and no run has an owner. */
async function untilSuspended(path: string, commits: number): Promise<void> {
  const db = new DatabaseSync(path, { readOnly: true });
  const written = db.prepare("SELECT count(*) AS n FROM commits");
  const owned = db.prepare("SELECT count(*) AS n FROM runs WHERE owner IS NOT NULL");
  const count = (statement: typeof written): number => (statement.get() as { n: number }).n;
  while (count(written) < commits || count(owned) > 0)
    await new Promise((resolve) => setTimeout(resolve, 20));
  db.close();
}

async function* suspended(folder: string): AsyncIterable<Row> {
  const count = Number(process.env["REEVE_BENCH_RUNS"] ?? 100_000);
  const path = join(folder, "suspended.db");
  const agent: HostedAgent = {
    id: formatAgentId({ name: "sleeper" }),
    run: async (ctx) => {
      await ctx.step("prepare", async () => "ready");
      await ctx.waitForSignal("go");
      return "done";
    },
  };
  const runtime = await openRuntime({ store: await open(path), suspendAfterMs: 1, concurrency: 256 });
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  for (let done = 0; done < count; done += 1_000) {
    await Promise.all(
      Array.from({ length: Math.min(1_000, count - done) }, () => runtime.submit(agent, null)),
    );
    await untilSuspended(path, 2 * Math.min(count, done + 1_000));
  }
  globalThis.gc?.();
  const after = process.memoryUsage().heapUsed;
  await runtime.close();
  yield {
    name: `a suspended run on disk (${count} of them)`,
    value: statSync(path).size / count,
    unit: "bytes",
    against: null,
    goal: { atMost: 3_072 },
  };
  yield {
    name: "a suspended run in the process",
    value: Math.max(0, after - before) / count,
    unit: "bytes",
    against: null,
    goal: { atMost: 64 },
  };
}

async function* watchers(folder: string): AsyncIterable<Row> {
  const runtime = await openRuntime({ store: await open(join(folder, "watchers.db")) });
  const agent = stepAgent("watched", 300);
  const alone: number[] = [];
  const watched: number[] = [];
  for (let round = 0; round < rounds; round++) {
    alone.push(await timeWatched(runtime, agent, 1));
    watched.push(await timeWatched(runtime, agent, 100));
  }
  await runtime.close();
  yield {
    name: "a run of 300 steps with 100 watchers, against one",
    value: median(watched),
    unit: "ms",
    against: median(alone),
    goal: null,
  };
}

async function timeWatched(runtime: Runtime, agent: HostedAgent, count: number): Promise<number> {
  const started = performance.now();
  const run = await runtime.submit(agent, null);
  await Promise.all(
    Array.from({ length: count }, async () => {
      for await (const event of run.events()) if (event.type === "run_end") return;
    }),
  );
  return performance.now() - started;
}

/**
 * The longest stall of this process's event loop while so many processes write to one file. It is the smallest maximum
 * of several rounds, because one hiccup of the machine makes a maximum.
 */
async function* stalls(folder: string): AsyncIterable<Row> {
  const { longestStallMs } = await import("./stall.ts");
  const one: number[] = [];
  const four: number[] = [];
  for (let round = 0; round < 4; round++) {
    one.push(await longestStallMs(join(folder, `stall-1-${round}.db`), 1));
    four.push(await longestStallMs(join(folder, `stall-4-${round}.db`), 4));
  }
  yield {
    name: "longest event-loop stall with four writing processes, against one",
    value: median(four),
    unit: "ms",
    against: median(one),
    goal: { atMost: 2 },
  };
  const { pickupMs } = await import("./pickup.ts");
  yield {
    name: "runs of a killed worker picked up after",
    value: await pickupMs(join(folder, "pickup.db")),
    unit: "ms",
    against: null,
    goal: { atMost: 1_000 },
  };
}
