import {
  rootTaskId,
  type Event,
  type RunHandle,
  type RunSummary,
  type Runtime,
} from "../../../kernel/index.ts";
import { RunFold } from "../../view/run-fold.ts";
import type { RunView } from "../../view/run-view.ts";

/** What a list shows of a run beside its summary. The figures are those of the newest event, also while the run works. */
export interface RunFigures {
  readonly runId: string;
  /** Number of tasks. 0 if the events of the run are not kept. */
  readonly agents: number;
  /** Number of tasks that have not ended. */
  readonly liveAgents: number;
  /** Number of model calls, tool calls and steps that have a result, without those that a fork shares with its origin. */
  readonly steps: number;
  /** Number of steps that a fork shares with its origin. */
  readonly freeSteps: number;
  /** `null` if a price is unknown. */
  readonly costUsd: number | null;
  /** Allowance of the run with all top-ups. `null` if it has no limit. */
  readonly maxCostUsd: number | null;
  readonly lostUsd: number;
  /** Recoveries after the death of a worker. */
  readonly crashes: readonly { readonly at: number; readonly replayed: number; readonly savedUsd: number }[];
}

/** A run that is folded up to one event, from which a later reader continues. */
interface Counted {
  readonly fold: RunFold;
  readonly steps: number;
  readonly freeSteps: number;
}

/** Number of ended runs whose figures are kept, and of working runs that are kept folded. */
const mostEnded = 5_000;
const mostFolded = 200;

/**
 * Reads the figures of runs from their events and keeps them. The first reading of a run costs O(events of the run), a
 * later one O(new events) while the run works, and nothing after its end.
 */
export class FiguresOfRuns {
  readonly #ended = new Map<string, { readonly updatedAt: number; readonly figures: RunFigures }>();
  readonly #folded = new Map<string, Counted>();
  readonly #reading = new Map<string, Promise<RunFigures>>();

  /** Returns the figures of a run, which the runtime may see. `undefined` if there is no such run. */
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
      else if (isStep(event)) steps++;
    }
    const counted = { fold, steps, freeSteps };
    const figures = { runId, ...figuresOf(fold.view(), counted) };
    this.#folded.delete(runId);
    if (endedAt === null) keep(this.#folded, mostFolded, runId, counted);
    else keep(this.#ended, mostEnded, runId, { updatedAt, figures });
    return figures;
  }
}

/** Sets a value of a map as its newest. The oldest one leaves if there are too many. */
function keep<Value>(values: Map<string, Value>, most: number, key: string, value: Value): void {
  values.delete(key);
  values.set(key, value);
  const [oldest] = values.keys();
  if (values.size > most && oldest !== undefined) values.delete(oldest);
}

function isStep({ type, data }: Event): boolean {
  if (type === "message_end") return "usage" in data;
  return type === "tool_execution_end" || type === "step_end";
}

function figuresOf(view: RunView, { steps, freeSteps }: Omit<Counted, "fold">): Omit<RunFigures, "runId"> {
  const root = view.tasks.get(rootTaskId);
  return {
    agents: view.tasks.size,
    liveAgents: view.live,
    steps,
    freeSteps,
    costUsd: root === undefined ? 0 : root.total.costUsd,
    maxCostUsd: root?.budget?.maxCostUsd ?? null,
    lostUsd: root?.total.lost.costUsd ?? 0,
    crashes: view.recoveries
      .filter(({ isCrash }) => isCrash)
      .map(({ at, replayed, savedUsd }) => ({ at, replayed, savedUsd })),
  };
}
