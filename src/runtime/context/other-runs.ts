import { unfinishedRuns } from "../../kernel/index.ts";
import type { TaskRunner } from "../task/task-runner.ts";

/** S5: whether another run of the session has not ended. */
export async function hasOtherRuns({ worker, facts, log }: TaskRunner): Promise<boolean> {
  const { runId, sessionId } = facts;
  for await (const run of log.readingEach(unfinishedRuns(worker.store.journal, { sessionId })))
    if (run.runId !== runId) return true;
  return false;
}
