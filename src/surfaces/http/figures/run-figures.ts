import {
  rootTaskId,
  type Failure,
  type RunHandle,
  type RunSummary,
  type Runtime,
} from "../../../kernel/index.ts";
import { ownCrashes } from "../../view/own-crashes.ts";
import { RunFold } from "../../view/run-fold.ts";
import type { RunView } from "../../view/run-view.ts";
import { isResult } from "../../view/recorded-calls.ts";
import { RecentValues } from "../recent-values.ts";

/**
 * The data that a list shows about a run in addition to its summary. They are always current up to the newest
 * event, even while the run is executed.
 */
export interface RunFigures {
  readonly runId: string;
  /** Number of events. */
  readonly events: number;
  /** Number of tasks. 0 if the events of the run are no longer stored. */
  readonly agents: number;
  /** Number of tasks that have not ended. */
  readonly liveAgents: number;
  /**
   * Number of model calls, tool calls and steps that have a result. Those that a fork shares with its original run
   * are not counted.
   */
  readonly steps: number;
  /** Number of steps that a fork shares with its original run. */
  readonly freeSteps: number;
  /**
   * The original run of a fork, and the sequence number of the last event that both share. `null` if this run is
   * not a fork.
   */
  readonly forkedFrom: { readonly runId: string; readonly at: number } | null;
  /** `null` if a price is unknown. */
  readonly costUsd: number | null;
  /** Cost limit of the run including all top-ups. `null` if it has no limit. */
  readonly maxCostUsd: number | null;
  /** Maximum number of turns, including all top-ups. `null` if it has no limit. */
  readonly maxTurns: number | null;
  readonly maxTokens: number | null;
  readonly deadlineMs: number | null;
  readonly lostUsd: number;
  /** The error with which the run ended. `null` if it has none. */
  readonly failure: Failure | null;
  /** Recoveries after the death of a worker. */
  readonly crashes: readonly { readonly at: number; readonly replayed: number; readonly savedUsd: number }[];
}

/** The data of a run, calculated up to one event, from which a later read continues. */
interface Counted {
  readonly fold: RunFold;
  readonly steps: number;
  readonly freeSteps: number;
}

/** Maximum number of ended runs whose figures are kept, and of active runs whose intermediate data are kept. */
const mostEnded = 5_000;
const mostFolded = 200;

/**
 * Reads the figures of runs from their events and keeps them. The first read of a run takes O(events of the run). A
 * later read takes O(new events) while the run is executed, and no time after its end.
 */
export class FiguresOfRuns {
  readonly #ended = new RecentValues<string, { readonly updatedAt: number; readonly figures: RunFigures }>(
    mostEnded,
  );
  readonly #folded = new RecentValues<string, Counted>(mostFolded);
  readonly #reading = new Map<string, Promise<RunFigures>>();

  /** Returns the figures of a run that is visible in this runtime. `undefined` if no such run exists. */
  async of(runtime: Runtime, runId: string): Promise<RunFigures | undefined> {
    const run = await runtime.find(runId);
    if (run === undefined) return undefined;
    const summary = await run.summary();
    const known = this.#ended.get(runId);
    if (known?.updatedAt === summary.updatedAt) return known.figures;
    const open = this.#reading.get(runId);
    if (open !== undefined) return open;
    const reading = this.#read(run, summary);
    this.#reading.set(runId, reading);
    return reading.finally(() => this.#reading.delete(runId));
  }

  async #read(run: RunHandle, { updatedAt, endedAt }: RunSummary): Promise<RunFigures> {
    const { runId } = run;
    const { fold, ...before } = this.#folded.get(runId) ?? { fold: new RunFold(), steps: 0, freeSteps: 0 };
    let { steps, freeSteps } = before;
    for await (const event of run.events({ fromSeq: fold.seq + 1, follow: false })) {
      if (!("seq" in event)) continue;
      fold.add(event);
      if (event.type === "run_fork") [steps, freeSteps] = [0, steps];
      else if (isResult(event)) steps++;
    }
    const counted = { fold, steps, freeSteps };
    const figures = { runId, ...figuresOf(fold.view(), counted) };
    this.#folded.delete(runId);
    if (endedAt === null) this.#folded.set(runId, counted);
    else this.#ended.set(runId, { updatedAt, figures });
    return figures;
  }
}

function figuresOf(view: RunView, { steps, freeSteps }: Omit<Counted, "fold">): Omit<RunFigures, "runId"> {
  const root = view.tasks.get(rootTaskId);
  return {
    events: view.seq + 1,
    agents: view.tasks.size,
    liveAgents: view.live,
    steps,
    freeSteps,
    forkedFrom: view.forkedFrom && { runId: view.forkedFrom.runId, at: view.forkedFrom.at },
    costUsd: root === undefined ? 0 : root.total.costUsd,
    maxCostUsd: root?.budget?.maxCostUsd ?? null,
    maxTurns: root?.budget?.maxTurns ?? null,
    maxTokens: root?.budget?.maxTokens ?? null,
    deadlineMs: root?.budget?.deadlineMs ?? null,
    lostUsd: root?.total.lost.costUsd ?? 0,
    failure: view.failure,
    crashes: ownCrashes(view).map(({ at, replayed, savedUsd }) => ({ at, replayed, savedUsd })),
  };
}
