import {
  allRuns,
  isInScope,
  type RunSummary,
  type Runtime,
  type TenantScope,
} from "../../../kernel/index.ts";
import type { FiguresOfRuns, RunFigures } from "./run-figures.ts";

/** Milliseconds of a UTC day. */
const dayMs = 86_400_000;

/** What the runs of a scope add up to. */
export interface WorkingFigures {
  /** Number of agents of working runs that have not ended. */
  readonly liveAgents: number;
  /** What working runs have spent since they waited last. The usage has it when they wait, pause or end. */
  readonly unrecordedUsd: number;
  /** Steps that runs read from their journals on this UTC day, after a worker had died, and their cost. */
  readonly replayedToday: number;
  readonly notPaidAgainTodayUsd: number;
}

/** A run that works, or that a worker left when it died. */
interface NotedRun {
  readonly run: RunSummary;
  readonly figures: RunFigures;
}

/**
 * The runs that work, and the crashes of the day. The first reading costs O(runs of the day and working runs), a later one
 * O(runs that changed since), whatever the number of runs that have ended.
 */
export class WorkingRuns {
  readonly #runtime: Runtime;
  readonly #figures: FiguresOfRuns;
  readonly #noted = new Map<string, NotedRun>();
  /** Up to where the changes of runs are known. */
  #position: string | undefined;
  #reading: Promise<void> = Promise.resolve();

  /** `runtime` sees the runs of all tenants. */
  constructor(runtime: Runtime, figures: FiguresOfRuns) {
    this.#runtime = runtime;
    this.#figures = figures;
  }

  /** Returns the present figures of the runs in a scope, or of all runs without a scope. */
  async of(scope: TenantScope | undefined): Promise<WorkingFigures> {
    // One read at a time. Each read sees what changed before its call. The previous read reports its failure to its
    // own caller.
    const reading = this.#reading.then(() => this.#read());
    this.#reading = reading.catch(() => undefined);
    await reading;
    return this.#sum(scope);
  }

  #sum(scope: TenantScope | undefined): WorkingFigures {
    const today = this.#today();
    let [liveAgents, unrecordedUsd, replayedToday, notPaidAgainTodayUsd] = [0, 0, 0, 0];
    for (const [runId, { run, figures }] of this.#noted) {
      const crashes = figures.crashes.filter(({ at }) => at >= today);
      const isWorking = run.status === "running";
      if (!isWorking && crashes.length === 0) this.#noted.delete(runId);
      if (!isInScope(run, scope)) continue;
      if (isWorking) {
        liveAgents += figures.liveAgents;
        unrecordedUsd += Math.max(0, (figures.costUsd ?? 0) - (run.costUsd ?? 0));
      }
      for (const { replayed, savedUsd } of crashes) {
        replayedToday += replayed;
        notPaidAgainTodayUsd += savedUsd;
      }
    }
    return { liveAgents, unrecordedUsd, replayedToday, notPaidAgainTodayUsd };
  }

  async #read(): Promise<void> {
    const { runs, next } = await this.#runtime.changes(this.#position);
    for (const run of runs) await this.#note(run);
    if (this.#position === undefined) {
      for await (const run of allRuns(this.#runtime, { status: "running" })) await this.#note(run);
      const createdAfter = this.#today() - 1;
      for await (const run of allRuns(this.#runtime, { createdAfter })) await this.#note(run);
    }
    this.#position = next;
  }

  async #note(run: RunSummary): Promise<void> {
    const { runId } = run;
    const known = this.#noted.get(runId);
    if (known !== undefined && isSame(known.run, run)) return;
    const mayCount = run.status === "running" || run.recoveries > 0;
    const figures = mayCount ? await this.#figures.of(this.#runtime, runId) : undefined;
    if (figures === undefined) this.#noted.delete(runId);
    else this.#noted.set(runId, { run, figures });
  }

  #today(): number {
    const now = this.#runtime.clock.now();
    return now - (now % dayMs);
  }
}

/** Whether a run has committed nothing since. */
function isSame(one: RunSummary, other: RunSummary): boolean {
  return (
    one.updatedAt === other.updatedAt &&
    one.status === other.status &&
    one.recoveries === other.recoveries &&
    one.costUsd === other.costUsd
  );
}
