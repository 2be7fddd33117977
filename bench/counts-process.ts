// Counts the work of one script in a process of its own: node counts-process.ts SCRIPT
import { createHook } from "node:async_hooks";
import { mkdtempSync, rmSync } from "node:fs";
import { Session } from "node:inspector";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StatementSync } from "node:sqlite";
import { openRuntime } from "reeve";
import type { Runtime } from "reeve/kernel";
import { children, deltas, runs, toolCalls, turns } from "./scripts.ts";

/** What is counted, for one unit of a script. */
export interface Counts {
  /** Calls of functions of the package and of the packages that it uses. */
  readonly calls: number;
  readonly promises: number;
  /** Bytes that were allocated on the JavaScript heap. */
  readonly allocated: number;
  /** Statements that write. */
  readonly statements: number;
  /** Bytes of the texts and blobs that these statements were given. */
  readonly written: number;
  /** Calls of `JSON.stringify`. */
  readonly serialisations: number;
}

interface Script {
  readonly durable: boolean;
  /** The counts of two sizes are subtracted, so that what both have in common cancels out. */
  readonly sizes: readonly [number, number];
  /** Prepares work that contains `units` units. */
  readonly prepare: (runtime: Runtime, units: number) => () => Promise<void>;
}

export const scripts = {
  turn: { durable: false, sizes: [10, 60], prepare: turns },
  "tool call": { durable: false, sizes: [10, 110], prepare: toolCalls },
  delta: { durable: false, sizes: [100, 900], prepare: deltas },
  "spawn and join": { durable: false, sizes: [10, 60], prepare: children },
  run: { durable: false, sizes: [2, 12], prepare: runs },
  "durable turn": { durable: true, sizes: [10, 60], prepare: turns },
} satisfies Record<string, Script>;

export type ScriptName = keyof typeof scripts;

const session = new Session();

/** `Session.post` calls its callback before it returns. */
function post(method: string, parameters: object = {}): unknown {
  let answer: unknown;
  session.post(method, parameters, (error, result) => {
    if (error !== null) throw error;
    answer = result;
  });
  return answer;
}

interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly { readonly ranges: readonly [{ readonly count: number }] }[];
  }[];
}

async function countCalls(work: () => Promise<void>): Promise<number> {
  post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  post("Profiler.takePreciseCoverage");
  await work();
  const { result } = post("Profiler.takePreciseCoverage") as Coverage;
  post("Profiler.stopPreciseCoverage");
  let calls = 0;
  for (const { url, functions } of result) {
    if (!url.startsWith("file:") || url.includes("/bench/")) continue;
    for (const { ranges } of functions) calls += ranges[0].count;
  }
  return calls;
}

async function countPromises(work: () => Promise<void>): Promise<number> {
  let promises = 0;
  const hook = createHook({
    init: (_id, type) => {
      if (type === "PROMISE") promises++;
    },
  }).enable();
  await work();
  hook.disable();
  return promises;
}

async function countBytes(work: () => Promise<void>): Promise<number> {
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  await work();
  return process.memoryUsage().heapUsed - before;
}

/** What statements and `JSON.stringify` have done since the process started. */
const done = { statements: 0, written: 0, serialisations: 0 };

/** Calls `seen` with the arguments of each call of a method. */
function watch(owner: object, name: string, seen: (args: readonly unknown[]) => void): void {
  const original = Reflect.get(owner, name) as (...args: unknown[]) => unknown;
  Reflect.set(owner, name, function watched(this: unknown, ...args: unknown[]) {
    seen(args);
    return original.apply(this, args);
  });
}

function noteStatement(values: readonly unknown[]): void {
  done.statements++;
  for (const value of values)
    if (typeof value === "string") done.written += Buffer.byteLength(value);
    else if (ArrayBuffer.isView(value)) done.written += value.byteLength;
}

async function measure(work: () => Promise<void>): Promise<Counts> {
  const calls = await countCalls(work);
  const promises = await countPromises(work);
  const allocated = await countBytes(work);
  const before = { ...done };
  await work();
  return {
    calls,
    promises,
    allocated,
    statements: done.statements - before.statements,
    written: done.written - before.written,
    serialisations: done.serialisations - before.serialisations,
  };
}

const names = ["calls", "promises", "allocated", "statements", "written", "serialisations"] as const;

/** Combines counts field by field. */
function combine(all: readonly Counts[], of: (values: readonly number[]) => number): Counts {
  return Object.fromEntries(
    names.map((name) => [name, of(all.map((counts) => counts[name]))]),
  ) as unknown as Counts;
}

/** Executions of each size that are measured. */
const rounds = 2;

/**
 * Counts the work of one unit of the script. For each size the lowest count is taken, because timers and busy machines
 * only add to it.
 */
async function countScript({ durable, sizes, prepare }: Script): Promise<Counts> {
  const folder = mkdtempSync(join(tmpdir(), "reeve-counts-"));
  const store = durable ? (`sqlite:${join(folder, "reeve.db")}` as const) : "memory:";
  const runtime = await openRuntime({ store, unknownPrice: "ignore", keepEndedRunsMs: 0, pollMs: 600_000 });
  const works = sizes.map((units) => settled(prepare(runtime, units)));
  // The first executions compile functions and fill caches.
  for (const work of works) await measure(work);
  const measured: Counts[][] = works.map(() => []);
  for (let round = 0; round < rounds; round++)
    for (const [size, work] of works.entries()) measured[size]?.push(await measure(work));
  await runtime.close();
  rmSync(folder, { recursive: true });
  const lowest = measured.map((counts) => combine(counts, (values) => Math.min(...values)));
  return combine(lowest, ([small = 0, large = 0]) => (large - small) / (sizes[1] - sizes[0]));
}

/** The work, until the runtime has also done what it does after it has delivered the result. */
function settled(work: () => Promise<void>): () => Promise<void> {
  return async () => {
    await work();
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  };
}

if (import.meta.main) {
  session.connect();
  post("Profiler.enable");
  // Statements that read are not counted: how often a process looks for changes of others depends on the clock.
  watch(StatementSync.prototype, "run", noteStatement);
  watch(JSON, "stringify", () => done.serialisations++);
  console.log(JSON.stringify(await countScript(scripts[process.argv[2] as ScriptName])));
}
