// Measures one script in a process of its own: node pairs-process.ts REQUEST. Prints the microseconds of processor time of one unit.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HistoryRetention, openRuntime } from "reeve";
import type { Runtime } from "reeve/kernel";
import { cpuMs } from "./cpu-time.ts";
import { children, deltas, nested, runs, toolCalls, turns } from "./scripts.ts";

interface PairScript {
  readonly title: string;
  readonly durable: boolean;
  /** What one execution of the work contains. */
  readonly units: number;
  readonly prepare: (runtime: Runtime, units: number) => (() => Promise<void>) | Promise<() => Promise<void>>;
}

/** In memory, nothing is kept of a run that has ended: otherwise the last execution would meet a larger heap than the first. */
const oneOff = { retention: HistoryRetention.RUN };

function turnsInMemory(units: number): PairScript {
  return {
    title: `turn in memory, N=${units}`,
    durable: false,
    units,
    prepare: (runtime) => turns(runtime, units, oneOff),
  };
}

export const pairScripts: Readonly<Record<string, PairScript>> = {
  "turn-10": turnsInMemory(10),
  "turn-100": turnsInMemory(100),
  "turn-1000": turnsInMemory(1_000),
  run: { title: "run with one model call", durable: false, units: 20, prepare: runs },
  "tool-call": { title: "tool call of a turn with 100", durable: false, units: 100, prepare: toolCalls },
  delta: { title: "delta that the caller reads", durable: false, units: 2_000, prepare: deltas },
  nesting: {
    title: "run with three levels of children",
    durable: false,
    units: 10,
    prepare: (runtime, units) => nested(runtime, units, oneOff),
  },
  spawn: { title: "spawn and join of a child", durable: false, units: 50, prepare: children },
  "durable-turn": { title: "durable turn, N=100", durable: true, units: 100, prepare: turns },
  "workflow-step": {
    title: "step of a workflow on SQLite",
    durable: true,
    units: 400,
    prepare: workflowSteps,
  },
};

/** The import is here, because older packages do not have it. */
async function workflowSteps(runtime: Runtime, units: number): Promise<() => Promise<void>> {
  const { workflow } = await import("reeve/workflow");
  const kilobyte = { text: "x".repeat(1_000) };
  const steps = workflow("steps", async (ctx): Promise<string> => {
    for (let index = 0; index < units; index++) await ctx.step("work", () => kilobyte);
    return "done";
  });
  return async () => {
    const output = await steps.run(null, { runtime });
    if (output !== "done") throw new Error(`the workflow ended with ${JSON.stringify(output)}`);
  };
}

/** What a process is asked to measure. */
export interface PairRequest {
  readonly script: string;
  /** Processor time in milliseconds, of executions that are discarded and of those that count. */
  readonly warmUpMs: number;
  readonly measuredMs: number;
}

async function measure(request: PairRequest): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "reeve-pair-"));
  try {
    return await measureIn(folder, request);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function measureIn(folder: string, { script, warmUpMs, measuredMs }: PairRequest): Promise<number> {
  const { durable, units, prepare } = pairScripts[script] as PairScript;
  const store = durable ? (`sqlite:${join(folder, "reeve.db")}` as const) : "memory:";
  const runtime = await openRuntime({ store, unknownPrice: "ignore", keepEndedRunsMs: 0 });
  const work = await prepare(runtime, units);
  for (let spent = 0; spent < warmUpMs;) spent += await cpuMs(work);
  let [spent, executions] = [0, 0];
  for (; spent < measuredMs; executions++) spent += await cpuMs(work);
  await runtime.close();
  return (spent * 1_000) / executions / units;
}

if (import.meta.main) {
  const request = JSON.parse(process.argv[2] ?? "{}") as PairRequest;
  console.log(JSON.stringify(await measure(request)));
}
