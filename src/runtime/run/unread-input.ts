import {
  Fault,
  rootTaskId as root,
  Supervision,
  type InputQueue,
  type Submission,
} from "../../kernel/index.ts";
import { newRun } from "../journal/new-run.ts";
import { anonymousUser, type WorkerContext } from "../process/worker-context.ts";
import type { RunLog } from "../journal/run-log.ts";
import type { ArrivedValue } from "../journal/resolutions.ts";
import type { RunState } from "../journal/run-state.ts";
import { mailOfSubmission, queueWait } from "../journal/wait-names.ts";

export interface CompletedRun {
  readonly worker: WorkerContext;
  readonly log: RunLog;
  readonly state: RunState;
  readonly tenantId: string | null;
}

const queues: readonly InputQueue[] = ["steer", "follow_up"];

/**
 * S5: what was said to a run that completed, and heard by no drain of it, starts a run of its own: submitted as the run itself was, in the
 * commit that ends it, so that nothing comes between. The first starts the run, the others are said to that one. A run that did not
 * complete keeps what was said to it, for it may be resumed.
 */
export function carryOver(completed: CompletedRun): void {
  const { log, state } = completed;
  if (state.resolutions.isEmpty || state.task(root).outcome?.status !== "completed") return;
  for (const kind of queues) {
    for (const arrived of state.resolutions.all(root, queueWait(kind))) {
      const submission = submitAgain(completed, kind, arrived);
      log.submit(submission);
      log.emit(root, { type: "run_carry_over", data: { kind, runId: submission.run.runId } });
      state.carryOver(kind);
    }
  }
}

/** Under the id it was submitted under, if it was. */
function submitAgain(
  { worker, state, tenantId }: CompletedRun,
  kind: InputQueue,
  { value, runId }: ArrivedValue,
): Submission {
  const { agentId, supervision, budget, userId, metadata, streaming, channel } = state.task(root).record;
  const { spawnBudget, priority, retention, sessionId, runId: before } = Supervision.fromJSON(supervision);
  const agent = worker.agents.get(agentId);
  if (agent === undefined) throw new Fault("not_found", `there is no agent ${agentId} here to go on`);
  const options = { sessionId, budget, spawnBudget, priority, retention, metadata, streaming };
  const { record: run, first } = newRun(worker, agent, value, {
    ...options,
    ...(channel !== undefined && { channel }),
    ...(userId !== null && { userId }),
    ...(tenantId !== null && { tenantId }),
    ...(runId !== undefined && { runId }),
  });
  const steering = {
    id: `${mailOfSubmission(run.runId)} left by ${before}`,
    from: userId ?? anonymousUser,
    at: run.createdAt,
    body: { type: kind, input: value },
  } as const;
  return { run, first, flight: { steering, always: true } };
}
