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
  /** Number of agents of active runs that have not ended. */
  readonly liveAgents: number;
  /**
   * Costs of active runs since they last waited. The usage statistics do not contain these costs until the runs
   * wait, pause or end.
   */
  readonly unrecordedUsd: number;
  /** Number and cost of steps that runs took from their journals on this UTC day, after a worker had crashed. */
  readonly replayedToday: number;
  readonly notPaidAgainTodayUsd: number;
}

/** A run that is executed, or whose worker has crashed. */
interface NotedRun {
  readonly run: RunSummary;
  readonly figures: RunFigures;
}

/**
 * The active runs, and the crashes of the current day. The first read takes O(runs of the day and active runs), a
 * later read takes O(runs that changed since then). The number of ended runs does not matter.
 */
export class WorkingRuns {
  readonly #runtime: Runtime;
  readonly #figures: FiguresOfRuns;
  readonly #noted = new Map<string, NotedRun>();
  /** Position in the changes of runs up to which they are known. */
  #position: string | undefined;
  #reading: Promise<void> = Promise.resolve();

  /** `runtime` sees the runs of all tenants. */
  constructor(runtime: Runtime, figures: FiguresOfRuns) {
    this.#runtime = runtime;
    this.#figures = figures;
  }

  /** Returns the current figures of the runs in a scope, or of all runs if no scope is given. */
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

/** Whether a run has stored nothing between two summaries. */
function isSame(one: RunSummary, other: RunSummary): boolean {
  return (
    one.updatedAt === other.updatedAt &&
    one.status === other.status &&
    one.recoveries === other.recoveries &&
    one.costUsd === other.costUsd
  );
}
