import type { ApprovalPage, Delta, Event, PendingApproval, RunId, TailOptions } from "../../kernel/index.ts";
import { missingRun, type RunStore } from "./run-store.ts";

/** The part of a run handle that is needed to wait for questions. */
interface WatchedRun {
  readonly runId: RunId;
  readonly store: RunStore;
  tail(options: TailOptions): AsyncIterable<Event | Delta>;
}

/** Events after which a run may only wait. */
const turningPoints = ["approval_request", "task_suspend", "task_end", "run_end"] as const;

/** K4: the open questions of a run. Costs O(open questions of the run). */
export async function readPendingApprovals({
  store,
  runId,
}: Pick<WatchedRun, "store" | "runId">): Promise<readonly PendingApproval[]> {
  const pending: PendingApproval[] = [];
  let after: string | null = null;
  do {
    const { approvals, next }: ApprovalPage = await store.journal.approvals({
      runId,
      limit: 500,
      ...(after !== null && { after }),
    });
    pending.push(...approvals);
    after = next;
  } while (after !== null);
  if (pending.length === 0 && (await store.journal.find(runId)) === undefined) throw missingRun(runId);
  return pending;
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
