import type {
  HostedAgent,
  Event,
  JsonValue,
  RunHandle,
  RunSummary,
  StepKind,
  Store,
  SubmitOptions,
} from "../../src/kernel/index.ts";
import { newRun } from "../../src/runtime/journal/new-run.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { memoryStore, sha256, type RuntimeOptions } from "../../src/runtime/index.ts";
import { StoredRunHandle } from "../../src/runtime/client/run-handle.ts";
import { dyingStore } from "../../src/testing/dying-store.ts";
import { FakeClock, sequentialIds } from "../../src/testing/index.ts";
import { readAll, until } from "./runtime-setup.ts";

export interface Workload {
  /** Made anew for every worker, as another process would. */
  readonly agents: () => readonly [HostedAgent, ...HostedAgent[]];
  readonly input?: JsonValue;
  readonly submit?: SubmitOptions;
  readonly options?: RuntimeOptions;
  /** What someone outside does, again and again until the run has ended. */
  /** Whether what came of it is all there, when the run has ended and so have those that came of it. */
  readonly isOver?: (runs: readonly RunSummary[]) => boolean;
  readonly outside?: (handle: RunHandle, events: readonly Event[]) => Promise<void>;
}

export interface Life {
  readonly output: JsonValue;
  readonly status: string;
  readonly events: readonly Event[];
  readonly costUsd: number | null;
  readonly writes: number;
  /** Calls of models, tools and steps that were recorded, of all runs, when the first worker died or the run ended. */
  readonly recorded: number;
  /** What the log said by then. */
  readonly eventsAtCrash: readonly Event[];
  /** How often the world had been asked for something by then. */
  readonly asked: number;
}

const effects: ReadonlySet<StepKind> = new Set(["llm", "tool", "step"]);

/** Runs a workload on a worker that dies at its n-th write, and then on one that does not. */
export async function live(
  { agents, input = null, submit = {}, options = {}, outside, isOver = () => true }: Workload,
  {
    asked,
    ...death
  }: { readonly asked: () => number; readonly at?: number; readonly when?: "before" | "after" },
): Promise<Life> {
  const clock = new FakeClock();
  const real = memoryStore({ hash: sha256 });
  let recorded = 0;
  const counting: Store = {
    ...real,
    journal: {
      create: (...args) => real.journal.create(...args),
      find: (...args) => real.journal.find(...args),
      list: (...args) => real.journal.list(...args),
      read: (...args) => real.journal.read(...args),
      replay: (...args) => real.journal.replay(...args),
      delete: (...args) => real.journal.delete(...args),
      collect: (...args) => real.journal.collect(...args),
      append: async (lease, each, submissions) => {
        const standing = await real.journal.append(lease, each, submissions);
        recorded += (each.steps ?? []).filter(({ kind }) => effects.has(kind)).length;
        return standing;
      },
    },
  };
  const common = { clock, pollMs: 50, suspendAfterMs: 100, ...options };
  const [first] = agents();
  const { record: run, first: commit } = newRun({ clock, ids: sequentialIds("s") }, first, input, submit);
  await real.journal.create(run, commit);
  const record = run.runId;
  const handle = new StoredRunHandle({ store: real, clock, ids: sequentialIds("h"), record: run });
  let dead = false;
  const die = (): void => {
    dead = true;
  };
  const store = dyingStore(counting, {
    at: death.at ?? Number.POSITIVE_INFINITY,
    when: death.when ?? "after",
    die,
  });
  // A dead worker says nothing, also not that its run is another's now.
  const onError = (error: unknown): void => {
    if (!dead) throw error;
  };
  const one = await createRuntime({ ...common, store, ids: sequentialIds("a"), workerId: "one", onError });
  for (const agent of agents()) one.register(agent);
  const ended = async (): Promise<boolean> => {
    if ((await readAll(real, record)).at(-1)?.type !== "run_end") return false;
    const { runs } = await real.journal.list();
    return isOver(runs) && runs.every(({ endedAt }) => endedAt !== null);
  };
  const drive = async (over: () => boolean | Promise<boolean>): Promise<void> => {
    for (let round = 0; round < 400 && !(await over()); round++) {
      await outside?.(handle, await readAll(real, record));
      await clock.advance(25);
    }
  };
  await drive(async () => dead || (await ended()));
  const atDeath = { recorded, asked: asked(), eventsAtCrash: await readAll(real, record) };
  if (dead) {
    await real.leases.dismiss("one");
    const two = await createRuntime({ ...common, store: real, ids: sequentialIds("b"), workerId: "two" });
    for (const agent of agents()) two.register(agent);
    await drive(ended);
  }
  await until(ended);
  const { output, status, costUsd } = await handle.result();
  return { output, status, costUsd, events: await readAll(real, record), writes: store.writes, ...atDeath };
}
