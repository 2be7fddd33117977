import {
  Fault,
  rootTaskId as root,
  Supervision,
  type EventDraft,
  type InputQueue,
  type NextRun,
  type Submission,
  type TaskId,
  type TaskOutcome,
} from "../../kernel/index.ts";
import { newRun } from "../journal/new-run.ts";
import { anonymousUser } from "../process/worker-context.ts";
import { inputQueues } from "../journal/queued-inputs.ts";
import type { ArrivedValue } from "../journal/resolutions.ts";
import type { RunState } from "../journal/run-state.ts";
import { mailOfSubmission, queueWait } from "../journal/wait-names.ts";
import { isCompaction, type EndedRun } from "./next-runs.ts";

/**
 * S5: submits the input that a completed run has received and not read. The submission is part of the commit that
 * ends the run, so that no other run of the session can start in between. The first input starts a new run with the
 * options of the completed one, and further inputs become steering for that new run. A run that did not complete
 * keeps its input, because it may be resumed. A compaction keeps no input, because it is never resumed.
 */
export function carryOver(completed: EndedRun): void {
  const { log, state, kind: ended } = completed;
  if (state.resolutions.isEmpty) return;
  if (ended !== "compaction" && state.task(root).outcome?.status !== "completed") return;
  for (const kind of inputQueues) {
    for (const arrived of state.resolutions.all(root, queueWait(kind))) {
      const submission = submitAgain(completed, kind, arrived);
      log.submit(submission);
      log.emit(root, { type: "run_carry_over", data: { kind, runId: submission.run.runId } });
      state.dropInput(root, kind);
    }
  }
}

/**
 * Reports the input that a completed child has received and not read. A child that did not complete keeps its
 * input, because it may be resumed.
 */
export function reportUnread(
  { log, state }: Pick<EndedRun, "log" | "state">,
  taskId: TaskId,
  { status }: TaskOutcome,
): void {
  if (state.resolutions.isEmpty || status !== "completed") return;
  for (const kind of inputQueues) {
    for (const { value: input } of state.resolutions.all(taskId, queueWait(kind))) {
      log.emit(taskId, { type: "input_unread", data: { kind, input } });
      state.dropInput(taskId, kind);
    }
  }
}

/** Submits an input that came from `submit` with the run id and the metadata that its caller chose. */
function submitAgain(
  { worker, state, tenantId, kind: ended }: EndedRun,
  kind: InputQueue,
  { value, runId, metadata: ownMetadata }: ArrivedValue,
): Submission {
  const { agentId, supervision, budget, userId, metadata, streaming, channel } = state.task(root).record;
  const {
    spawnBudget,
    priority,
    retention,
    sessionId,
    runId: completedRunId,
  } = Supervision.fromJSON(supervision);
  const agent = worker.agents.get(agentId);
  if (agent === undefined)
    throw new Fault(
      "not_found",
      `agent ${agentId} is not registered with this runtime, so it cannot take the unread input of ${completedRunId}`,
    );
  const own = ownMetadata === undefined ? {} : { metadata: ownMetadata };
  const options = { sessionId, spawnBudget, priority, retention, metadata, ...own, streaming };
  const { record: run, first } = newRun(worker, agent, value, {
    ...options,
    // The budget of a compaction is for its summaries.
    ...(ended !== "compaction" && { budget }),
    ...(channel !== undefined && { channel }),
    ...(userId !== null && { userId }),
    ...(tenantId !== null && { tenantId }),
    ...(runId !== undefined && { runId }),
  });
  const steering = {
    id: `${mailOfSubmission(run.runId)} left by ${completedRunId}`,
    from: userId ?? anonymousUser,
    at: run.createdAt,
    body: { type: kind, input: value, ...own },
  } as const;
  return { run, first, flight: { steering, always: true } };
}

/**
 * Returns the closing events of a root. The event `settled` is missing if a compaction follows, or if there is
 * input that the root has received and not read.
 */
export function withoutSettled(
  { resolutions }: RunState,
  events: readonly EventDraft[],
  next: readonly NextRun[],
): readonly EventDraft[] {
  const isFollowed =
    next.some(isCompaction) ||
    (!resolutions.isEmpty && inputQueues.some((kind) => resolutions.all(root, queueWait(kind)).length > 0));
  return isFollowed ? events.filter(({ type }) => type !== "settled") : events;
}
