import { withScore, type RunScore, type RunSummary } from "../../../kernel/index.ts";
import { listedRecord, statusOf, type Holder } from "../run-status.ts";
import type { RunRow } from "./run-row.ts";

/**
 * Returns the status of a run and the reasons for which it waits. `workers` are the live workers. If absent, every
 * owner counts as alive.
 */
export function memoryStatusOf(
  row: StatusRow,
  workers?: ReadonlySet<string>,
): Pick<RunSummary, "status" | "waitsFor"> {
  const { owner, standing } = row;
  const isDead = owner !== null && workers?.has(owner) === false;
  const isLeft = isDead && (standing === null || standing.status === "running");
  return statusOf(row.end, row.standing, isLeft ? readyOf(row) : holderOf(row));
}

type StatusRow = Pick<
  RunRow,
  "record" | "end" | "standing" | "owner" | "rest" | "mail" | "isHeld" | "isQueued"
>;

function readyOf({ record }: Pick<StatusRow, "record">): Holder {
  return record.host === undefined ? "ready" : "bound";
}

function holderOf({ record, owner, rest, mail, isHeld, isQueued }: StatusRow): Holder {
  if (owner !== null) return "owned";
  if (isHeld) return "held";
  if (isQueued && mail.length === 0) return "queued";
  if (rest.kind !== "suspended" || mail.length > 0) return readyOf({ record });
  return rest.wakeAt !== null && rest.wakeAt === record.startAt ? "scheduled" : "suspended";
}

export function summaryOf(row: RunRow, workers?: ReadonlySet<string>): RunSummary {
  const { record, end, spent, commits, scores } = row;
  const updatedAt = commits.at(-1)?.at ?? record.createdAt;
  const status = memoryStatusOf(row, workers);
  return {
    ...listedRecord(record),
    ...status,
    ...spent,
    updatedAt,
    endedAt: end?.at ?? null,
    ...(scores !== undefined && { scores: countingScores(row) }),
  };
}

/** Z1: the scores of a run that count. */
export function countingScores({ scores = [] }: Pick<RunRow, "scores">): readonly RunScore[] {
  return scores.filter(({ replacedAt }) => replacedAt === null).reduce<readonly RunScore[]>(withScore, []);
}
