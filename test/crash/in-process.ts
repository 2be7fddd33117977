import { formatRunId, type Store } from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { memoryStore, sha256 } from "../../src/runtime/index.ts";
import { checkCase, type CaseTrace, type Life } from "../../src/testing/crash-promises.ts";
import {
  dyingStore,
  FakeClock,
  sequentialIds,
  traceRun,
  type BrokenPromise,
  type CrashReport,
  type Death,
} from "../../src/testing/index.ts";
import { InProcessServices } from "../agents/architecture-cases/in-process-services.ts";
import type { ArchitectureCase } from "../agents/architecture-cases/architecture-case.ts";
import { deathsAt } from "../effort.ts";
import { price } from "./workload.ts";

const runId = formatRunId("thinker");
/** Maximum number of steps of 25 ms each, measured by the test's clock. */
const mostRounds = 400;

/** Does the same as `runCrashes` in this process and in memory. A worker dies when its store stops answering. */
export async function crashInProcess(thinker: ArchitectureCase): Promise<CrashReport> {
  const { trace: uncrashed, writes } = await doCase(thinker);
  const { maxParallelCalls = 1, hasUnorderedEvents = false } = thinker;
  const judge = (trace: CaseTrace, kills: readonly string[]): readonly BrokenPromise[] =>
    checkCase(trace, uncrashed, {
      branches: maxParallelCalls,
      ignore: [],
      mayExhaust: false,
      sideBySide: hasUnorderedEvents,
    }).map((each) => ({
      ...each,
      kills,
    }));
  const broken = [...judge(uncrashed, [])];
  let kills = 0;
  for (let at = 1; at <= writes; at++) {
    for (const when of deathsAt(at)) {
      const { trace, died } = await doCase(thinker, { at, when });
      if (died !== undefined) kills++;
      broken.push(...judge(trace, [died ?? `none at write ${at}`]));
    }
  }
  const { calls, runs } = uncrashed;
  const outputs = runs.map(({ output }) => output);
  return { broken, cases: kills, kills, writes, calls: calls.length, outputs };
}

interface Case {
  readonly trace: CaseTrace;
  /** Number of writes of the case without a death. */
  readonly writes: number;
  /** Description of the write at which the worker died. */
  readonly died: string | undefined;
}

async function doCase(thinker: ArchitectureCase, death?: Death): Promise<Case> {
  const clock = new FakeClock();
  const real = memoryStore({ hash: sha256 });
  const outside = new InProcessServices(thinker.reply);
  let died: string | undefined;
  const dead = Promise.withResolvers<void>();
  const die = (write: string): void => {
    died = write;
    dead.resolve();
  };
  const mortal = dyingStore(real, { at: Infinity, when: "after", ...death, die });
  const hasEnded = async (): Promise<boolean> => {
    if ((await real.journal.find(runId)) === undefined) return false;
    const last = await real.events.lastSeq(runId);
    for await (const { type } of real.events.read(runId, last)) if (type === "run_end") return true;
    return false;
  };
  const lives: Life[] = [];
  const live = async (workerId: string, store: Store, isOver: () => boolean): Promise<void> => {
    outside.caller = workerId;
    const agent = thinker.agent(outside);
    // A dead worker reports nothing, not even that it lost its run to another worker.
    const onError = (error: unknown): void => {
      if (!isOver()) throw error;
    };
    const options = { store, clock, ids: sequentialIds(workerId), workerId, onError };
    const prices = { find: () => price };
    const submitted = createRuntime({ ...options, prices, pollMs: 50, suspendAfterMs: 100 }).then((runtime) =>
      runtime.submit(agent, thinker.input, { runId }),
    );
    await (store === mortal ? Promise.race([submitted, dead.promise]) : submitted);
    for (let round = 0; round < mostRounds && !isOver() && !(await hasEnded()); round++)
      await clock.advance(25);
    const trace = await traceRun(real, runId);
    lives.push({ caller: workerId, receipts: trace?.receipts ?? new Set() });
  };
  await live("one", mortal, () => died !== undefined);
  if (died !== undefined) {
    await real.leases.dismiss("one");
    await live("two", real, () => false);
  }
  const run = await traceRun(real, runId);
  const trace = { lives, calls: outside.calls, runs: run === undefined ? [] : [run] };
  return { trace, writes: mortal.writes, died };
}
