import type { RunSummary } from "../../../kernel/index.ts";
import { statusOf } from "../run-status.ts";
import type { RunRow } from "./run-row.ts";

/** The status of a run and what it waits for. */
export function memoryStatusOf({
  end,
  standing,
  owner,
  rest,
  mail,
}: Pick<RunRow, "end" | "standing" | "owner" | "rest" | "mail">): Pick<RunSummary, "status" | "waitsFor"> {
  const isLeft = rest.kind === "suspended" && mail.length === 0;
  return statusOf(end, standing, owner === null ? (isLeft ? "suspended" : "ready") : "owned");
}

export function summaryOf(row: RunRow): RunSummary {
  const { record, end, commits } = row;
  const updatedAt = commits.at(-1)?.at ?? record.createdAt;
  return { ...record, ...memoryStatusOf(row), updatedAt, endedAt: end?.at ?? null };
}
