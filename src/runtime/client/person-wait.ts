import type { Delta, Event, PendingApproval, RunId, TailOptions } from "../../kernel/index.ts";
import type { RunStore } from "./run-store.ts";

/** The part of a run handle that is needed to wait for questions. */
interface WatchedRun {
  readonly runId: RunId;
  readonly store: RunStore;
  tail(options: TailOptions): AsyncIterable<Event | Delta>;
}

/** Events after which a run may only wait. */
const turningPoints = ["approval_request", "task_suspend", "task_end", "run_end"] as const;

/** The questions of a run that are not answered, of tasks that have not ended. Costs O(events of the run). */
export async function readPendingApprovals({
  store,
  runId,
}: Pick<WatchedRun, "store" | "runId">): Promise<readonly PendingApproval[]> {
  const pending = new Map<string, PendingApproval>();
  for await (const event of store.events.read(runId)) {
    const { taskId, agentId, at: requestedAt } = event;
    if (event.type === "approval_request")
      pending.set(event.data.approvalId, { ...event.data, taskId, agentId, requestedAt });
    else if (event.type === "approval_decision") pending.delete(event.data.approvalId);
    else if (event.type === "task_end")
      for (const [approvalId, request] of pending) if (request.taskId === taskId) pending.delete(approvalId);
  }
  return [...pending.values()];
}

/**
 * Resolves with the pending questions when every live task of the run waits and one of them waits for a person, or with
 * an empty list when the run has ended.
 */
export async function untilPersonIsNeeded(run: WatchedRun): Promise<readonly PendingApproval[]> {
  for await (const event of run.tail({ types: turningPoints })) {
    if (event.type === "run_end") continue;
    const summary = await run.store.journal.summary(run.runId);
    if (summary?.status !== "waiting" || !summary.waitsFor.includes("person")) continue;
    const pending = await readPendingApprovals(run);
    if (pending.length > 0) return pending;
  }
  return [];
}
