import type { TaskRunner } from "../task/task-runner.ts";

const unfinished = ["pending", "running", "waiting", "paused"] as const;

/** S5: whether another run of the session has not ended. */
export async function hasOtherRuns({ worker, facts }: TaskRunner): Promise<boolean> {
  const { runId, sessionId } = facts;
  const { runs } = await worker.store.journal.list({ sessionId, status: unfinished, limit: 2 });
  return runs.some((run) => run.runId !== runId);
}
