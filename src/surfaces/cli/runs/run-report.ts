import {
  addUsage,
  Fault,
  noUsage,
  type ApprovalRequest,
  type RunId,
  type RunSummary,
  type Store,
  type Usage,
} from "../../../kernel/index.ts";
import { RunFold } from "../../view/run-fold.ts";

/** A run as its summary and its events describe it. */
export interface RunReport extends Pick<
  RunFold,
  "tasks" | "calls" | "unreported" | "input" | "output" | "failure" | "events"
> {
  readonly summary: RunSummary;
  /** The approval requests without an answer. Empty for an ended run, whose requests can no longer be answered. */
  readonly approvals: readonly ApprovalRequest[];
}

/** Reads the report of a run. Costs O(events of the run). */
export async function readReport(store: Store, runId: RunId): Promise<RunReport> {
  const summary = await store.journal.summary(runId);
  if (summary === undefined) throw new Fault("not_found", `run ${runId} not found in this store`);
  const fold = new RunFold();
  for await (const event of store.events.read(runId)) fold.add(event);
  const { tasks, calls, unreported, input, output, failure, events } = fold;
  const approvals = summary.endedAt === null ? fold.approvals : [];
  return { summary, tasks, calls, unreported, input, output, failure, events, approvals };
}

/** The sum of all calls of a run. The cost includes unreported calls; `null` if a price is unknown. */
export function totalOf({ calls, unreported }: Pick<RunReport, "calls" | "unreported">): {
  readonly calls: number;
  readonly usage: Usage;
  readonly costUsd: number | null;
} {
  const usage = calls.reduce((sum, line) => addUsage(sum, line.usage), noUsage);
  const { costUsd } = usage;
  return {
    calls: calls.reduce((sum, line) => sum + line.calls, 0) + unreported.calls,
    usage,
    costUsd: costUsd === null || unreported.costUsd === null ? null : costUsd + unreported.costUsd,
  };
}
