import type { RunSummary } from "../../../kernel/index.ts";
import { statusOf, type Holder } from "../run-status.ts";
import type { RunRow } from "./run-row.ts";

/** The status of a run and what it waits for. */
export function memoryStatusOf(row: StatusRow): Pick<RunSummary, "status" | "waitsFor"> {
  return statusOf(row.end, row.standing, holderOf(row));
}

type StatusRow = Pick<RunRow, "record" | "end" | "standing" | "owner" | "rest" | "mail" | "isHeld">;

function holderOf({ record, owner, rest, mail, isHeld }: StatusRow): Holder {
  if (owner !== null) return "owned";
  if (isHeld) return "held";
  if (rest.kind !== "suspended" || mail.length > 0) return "ready";
  return rest.wakeAt !== null && rest.wakeAt === record.startAt ? "scheduled" : "suspended";
}

export function summaryOf(row: RunRow): RunSummary {
  const { record, end, spent, commits } = row;
  const updatedAt = commits.at(-1)?.at ?? record.createdAt;
  return { ...record, ...memoryStatusOf(row), ...spent, updatedAt, endedAt: end?.at ?? null };
}
