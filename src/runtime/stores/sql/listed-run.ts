import { runStatuses, type RunSummary } from "../../../kernel/index.ts";
import { recordOf, RunState, spendOf, standingOf, type RunRow } from "../codec/stored-run.ts";
import { statusOf, type Holder } from "../run-status.ts";

/** A row of a list of runs. */
export interface ListedRun extends RunRow {
  readonly place: number;
  readonly createdAt: number;
  readonly state: number;
  readonly standing: string | null;
  readonly ended: number | null;
  readonly endedAt: number | null;
  /** SQLite has no booleans. */
  readonly isScheduled: boolean | number;
  readonly spent: string | null;
}

/** `updatedAt` is the time of the last commit. */
export function summaryOf(row: ListedRun, updatedAt: number | null | undefined): RunSummary {
  const { ended, standing, endedAt } = row;
  const end = ended === null ? null : { status: runStatuses[ended] ?? "completed" };
  return {
    ...recordOf(row),
    ...statusOf(end, standingOf(standing), holderOf(row)),
    ...spendOf(row.spent),
    updatedAt: updatedAt ?? row.createdAt,
    endedAt,
  };
}

function holderOf({ state, isScheduled }: ListedRun): Holder {
  if (state === RunState.READY) return "ready";
  if (state === RunState.OWNED) return "owned";
  if (state === RunState.HELD) return "held";
  return isScheduled === true || isScheduled === 1 ? "scheduled" : "suspended";
}
