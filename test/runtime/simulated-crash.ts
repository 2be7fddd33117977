import type {
  AgentResolver,
  HostedAgent,
  Event,
  JsonValue,
  RunHandle,
  RunSummary,
  StepKind,
  Store,
  SubmitOptions,
  UsageRow,
} from "../../src/kernel/index.ts";
import { newRun } from "../../src/runtime/journal/new-run.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { memoryStore, sha256, type RuntimeOptions } from "../../src/runtime/index.ts";
import { StoredRunHandle } from "../../src/runtime/client/run-handle.ts";
import { dyingStore } from "../../src/testing/dying-store.ts";
import { FakeClock, sequentialIds } from "../../src/testing/index.ts";
import { readAll, until } from "./runtime-setup.ts";

// The first check of a tool's arguments loads ajv. Loading takes real time, in which the fake clock would pass all deadlines.
await import("ajv");

/** A run to be repeated with a worker that crashes. */
export interface Workload {
  /** Creates the agents of one worker. The first one is the agent of the run. */
  readonly agents: () => readonly [HostedAgent, ...HostedAgent[]];
  /** Makes the agents of runs in place of `agents`, from what is stored with each run. */
  readonly resolver?: () => AgentResolver;
  readonly input?: JsonValue;
  readonly submit?: SubmitOptions;
  readonly options?: RuntimeOptions;
  /**
   * Returns whether all runs that the workload starts exist. The workload is over when this is true and all runs have
   * ended. Default: always true.
   */
  readonly isComplete?: (runs: readonly RunSummary[]) => boolean;
  /** Called repeatedly with the events so far, until the workload is over. */
  readonly interact?: (handle: RunHandle, events: readonly Event[]) => Promise<void>;
}

/**
 * The result of a workload, and what the store contained when its first worker crashed, or at the end if no worker
 * crashed.
 */
export interface WorkloadResult {
  readonly output: JsonValue;
  readonly status: string;
  readonly events: readonly Event[];
  readonly costUsd: number | null;
  readonly store: Store;
  /** The usage totals of the store by day. */
  readonly totals: readonly UsageRow[];
  readonly hours: readonly UsageRow[];
  /** Number of writes of the first worker to its store. */
  readonly writes: number;
  /** Number of recorded model calls, tool calls and steps, of all runs. */
  readonly recordedAtCrash: number;
  /** Events of the run. */
  readonly eventsAtCrash: readonly Event[];
  /** What `countCalls` returned. */
  readonly callsAtCrash: number;
}

const effects: ReadonlySet<StepKind> = new Set(["llm", "tool", "step"]);

/** Runs a workload on a worker that crashes before or after write number `at`, and then on a second worker that does not crash. */
export async function runWorkload(
  { agents, resolver, input = null, submit = {}, options = {}, interact, isComplete = () => true }: Workload,
  {
    countCalls = () => 0,
    at = Number.POSITIVE_INFINITY,
    when = "after",
  }: { readonly countCalls?: () => number; readonly at?: number; readonly when?: "before" | "after" } = {},
): Promise<WorkloadResult> {
  const clock = new FakeClock();
  const real = memoryStore({ hash: sha256 });
  let recorded = 0;
  const counting: Store = {
    ...real,
    journal: {
      create: (...args) => real.journal.create(...args),
      find: (...args) => real.journal.find(...args),
      summary: (...args) => real.journal.summary(...args),
      approvals: (...args) => real.journal.approvals(...args),
      list: (...args) => real.journal.list(...args),
      count: (...args) => real.journal.count(...args),
      changes: (...args) => real.journal.changes(...args),
      read: (...args) => real.journal.read(...args),
      replay: (...args) => real.journal.replay(...args),
      delete: (...args) => real.journal.delete(...args),
      collect: (...args) => real.journal.collect(...args),
      append: async (lease, next, submissions) => {
        const stored = await real.journal.append(lease, next, submissions);
        recorded += (next.steps ?? []).filter(({ kind }) => effects.has(kind)).length;
        return stored;
      },
    },
  };
  const common = { clock, pollMs: 50, suspendAfterMs: 100, ...options };
  const [first] = agents();
  const { record: run, first: commit } = newRun({ clock, ids: sequentialIds("s") }, first, input, submit);
  await real.journal.create(run, commit);
  const { runId } = run;
  const handle = new StoredRunHandle({ store: real, clock, ids: sequentialIds("h"), record: run });
  let hasCrashed = false;
  const crash = Promise.withResolvers<undefined>();
  const die = (): void => {
    hasCrashed = true;
    crash.resolve(undefined);
  };
  const store = dyingStore(counting, { at, when, die });
  // A crashed worker reports no errors, for example that another worker owns its run.
  const onError = (error: unknown): void => {
    if (!hasCrashed) throw error;
  };
  const opening = createRuntime({ ...common, store, ids: sequentialIds("a"), workerId: "one", onError });
  // A worker may crash before its runtime is open.
  const one = await Promise.race([opening, crash.promise]);
  const hosted = (): readonly (HostedAgent | AgentResolver)[] => (resolver ? [resolver()] : agents());
  for (const each of hosted()) one?.register(each);
  const hasEnded = async (): Promise<boolean> => {
    if ((await readAll(real, runId)).at(-1)?.type !== "run_end") return false;
    const { runs } = await real.journal.list();
    return isComplete(runs) && runs.every(({ endedAt }) => endedAt !== null);
  };
  const drive = async (isOver: () => boolean | Promise<boolean>): Promise<void> => {
    for (let round = 0; round < 400 && !(await isOver()); round++) {
      await interact?.(handle, await readAll(real, runId));
      await clock.advance(25);
    }
  };
  await drive(async () => hasCrashed || (await hasEnded()));
  const atCrash = {
    recordedAtCrash: recorded,
    callsAtCrash: countCalls(),
    eventsAtCrash: await readAll(real, runId),
  };
  if (hasCrashed) {
    await real.leases.dismiss("one");
    const two = await createRuntime({ ...common, store: real, ids: sequentialIds("b"), workerId: "two" });
    for (const each of hosted()) two.register(each);
    await drive(hasEnded);
  }
  await until(hasEnded);
  const { output, status, costUsd } = await handle.result();
  const [events, totals] = [await readAll(real, runId), await real.usage.sum({ by: "day" })];
  const hours = await real.usage.sum({ by: "hour" });
  return { output, status, costUsd, events, totals, hours, store: real, writes: store.writes, ...atCrash };
}
