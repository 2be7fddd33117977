// One kind of loop, measured in a process of its own: node turn-process.ts KIND
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HistoryRetention, openRuntime } from "reeve";
import { LoopScript } from "./loop-script.ts";
import { median } from "./row.ts";
import { bareLoop, BareSqliteLoop, finishRun, loopAgent } from "./turn-loop.ts";

/** A loop that is ready to be run again and again. */
interface Loop {
  run(): Promise<void>;
  close?(): Promise<void>;
}

const kinds = {
  bare: async (script: LoopScript): Promise<Loop> => ({ run: () => bareLoop(script) }),
  memory,
  "bare-sqlite": bareSqlite,
  sqlite,
};

export type LoopKind = keyof typeof kinds;

/** As the bare loop, it keeps nothing of what has ended. */
async function memory(script: LoopScript): Promise<Loop> {
  const runtime = await openRuntime({ unknownPrice: "ignore", keepEndedRunsMs: 0 });
  const agent = loopAgent(script);
  const once = { retention: HistoryRetention.RUN };
  return { run: () => finishRun(runtime, agent, once), close: () => runtime.close() };
}

async function bareSqlite(script: LoopScript): Promise<Loop> {
  const folder = newFolder();
  const loop = new BareSqliteLoop(join(folder, "bare.db"));
  return {
    run: () => loop.run(script),
    close: async () => {
      loop.close();
      rmSync(folder, { recursive: true });
    },
  };
}

async function sqlite(script: LoopScript): Promise<Loop> {
  const folder = newFolder();
  const store = `sqlite:${join(folder, "reeve.db")}` as const;
  const runtime = await openRuntime({ store, unknownPrice: "ignore" });
  const agent = loopAgent(script);
  return {
    run: () => finishRun(runtime, agent),
    close: async () => {
      await runtime.close();
      rmSync(folder, { recursive: true });
    },
  };
}

function newFolder(): string {
  return mkdtempSync(join(tmpdir(), "reeve-bench-"));
}

/** Microseconds a turn takes, by the number of turns. */
export type TurnTimes = Readonly<Record<100 | 1_000, number>>;

const warmUpMs = 1_000;

/** As the peers' harness does it: a second of short runs, then few runs of an agent that is made anew. */
async function turnTimes(open: (script: LoopScript) => Promise<Loop>): Promise<TurnTimes> {
  const short = new LoopScript(10);
  const warmUp = await open(short);
  for (const begun = performance.now(); performance.now() - begun < warmUpMs;)
    await checkedRun(warmUp, short);
  const timeTurns = async (turns: number, runs: number): Promise<number> => {
    const script = new LoopScript(turns);
    const loop = await open(script);
    const took: number[] = [];
    for (let run = 0; run < runs; run++) took.push((await checkedRun(loop, script)) / turns);
    await loop.close?.();
    return median(took);
  };
  const times = { 100: await timeTurns(100, 5), 1_000: await timeTurns(1_000, 3) };
  await warmUp.close?.();
  return times;
}

/** Microseconds. */
async function checkedRun(loop: Loop, script: LoopScript): Promise<number> {
  script.reset();
  const begun = performance.now();
  await loop.run();
  const took = (performance.now() - begun) * 1_000;
  script.check();
  return took;
}

if (import.meta.main) console.log(JSON.stringify(await turnTimes(kinds[process.argv[2] as LoopKind])));
