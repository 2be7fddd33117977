import type { RunSummaryStatus, RunSummary } from "../../../kernel/index.ts";
import type { RunRow } from "./run-row.ts";

export function summaryStatusOf({
  end,
  owner,
  rest,
  mail,
}: Pick<RunRow, "end" | "owner" | "rest" | "mail">): RunSummaryStatus {
  if (end !== null) return end.status;
  if (owner !== null) return "running";
  return rest.kind === "suspended" && mail.length === 0 ? "suspended" : "pending";
}

export function summaryOf(row: RunRow): RunSummary {
  const { record, end, commits } = row;
  const updatedAt = commits.at(-1)?.at ?? record.createdAt;
  return { ...record, status: summaryStatusOf(row), updatedAt, endedAt: end?.at ?? null };
}
