import {
  addUsage,
  Fault,
  noUsage,
  rootTaskId,
  type ApprovalRequest,
  type RunId,
  type RunSummary,
  type Store,
  type TaskId,
  type Usage,
} from "../../../../kernel/index.ts";
import { isUnanswered } from "../../../view/question-log.ts";
import { RunFold } from "../../../view/run-fold.ts";
import type { MoneyLine, RunView, TaskView } from "../../../view/run-view.ts";
import { likelyLossUsd, noSpend, type LostSpend, type Spend } from "../../../view/spend.ts";

/** One task of a run, as the commands print it. */
export type TaskReport = Pick<TaskView, "taskId" | "agentId" | "parentId" | "priority" | "status">;

/** A run as described by its summary and its events. */
export interface RunReport extends Pick<RunView, "input" | "output" | "failure" | "crashLoop"> {
  readonly summary: RunSummary;
  readonly tasks: ReadonlyMap<TaskId, TaskReport>;
  /** The model calls by agent and model. */
  readonly calls: readonly MoneyLine[];
  /** Charges for calls that ended without reported usage, and the likely real cost of these calls (rule B3). */
  readonly unreported: LostSpend & { readonly likelyUsd?: number | null };
  /** The approval requests without an answer. */
  readonly approvals: readonly ApprovalRequest[];
  /** Number of events. */
  readonly events: number;
}

/** Reads the report of a run. Takes O(events of the run). */
export async function readReport(store: Store, runId: RunId): Promise<RunReport> {
  const summary = await store.journal.summary(runId);
  if (summary === undefined) throw new Fault("not_found", `run ${runId} not found in this store`);
  const fold = new RunFold();
  for await (const event of store.events.read(runId)) fold.add(event);
  const view = fold.view();
  const { tasks, money, input, output, failure, crashLoop, seq } = view;
  return {
    summary,
    tasks: new Map([...tasks].map((task) => [task.taskId, taskReport(task)])),
    calls: [...money].filter(({ calls }) => calls > 0),
    unreported: unreportedOf(tasks.get(rootTaskId)?.total ?? noSpend),
    // The requests of an ended run can no longer be answered.
    approvals: summary.endedAt === null ? openRequests(view) : [],
    input,
    output,
    failure,
    crashLoop,
    events: seq + 1,
  };
}

function unreportedOf(total: Spend): RunReport["unreported"] {
  return total.lost.calls === 0 ? total.lost : { ...total.lost, likelyUsd: likelyLossUsd(total) };
}

function openRequests(view: RunView): readonly ApprovalRequest[] {
  return [...view.asked].filter((each) => isUnanswered(each, view)).map(({ request }) => request);
}

function taskReport({ taskId, agentId, parentId, priority, status }: TaskView): TaskReport {
  return { taskId, agentId, parentId, priority, status };
}

/** Returns the sum over all calls of a run. The cost includes unreported calls; it is `null` if a price is unknown. */
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
