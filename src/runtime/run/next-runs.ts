import {
  nextRunId,
  rootTaskId as root,
  Supervision,
  type EventDraft,
  type NextRun,
  type RunId,
  type RunKind,
  type Submission,
  type TaskRecord,
} from "../../kernel/index.ts";
import { newRun, type NewRunOptions } from "../journal/new-run.ts";
import { hostedAgent, type WorkerContext } from "../process/worker-context.ts";
import type { RunLog } from "../journal/run-log.ts";
import type { RunState } from "../journal/run-state.ts";

/** A run that ends, in the process that owns it. */
export interface EndedRun {
  readonly worker: WorkerContext;
  readonly log: RunLog;
  readonly state: RunState;
  readonly tenantId: string | null;
  readonly kind: RunKind;
}

export function isCompaction({ kind }: NextRun): boolean {
  return kind === "compaction";
}

/** Returns the events that name the runs which the end of this root submits. */
export function nextRunEvents(
  { worker, state }: Pick<EndedRun, "worker" | "state">,
  next: readonly NextRun[],
): readonly EventDraft[] {
  const { sessionId } = state.task(root).record.supervision;
  return next.map((run): EventDraft => {
    const runId = idOf(worker, state, run);
    return isCompaction(run)
      ? { type: "compaction_scheduled", data: { sessionId: run.sessionId ?? sessionId, runId } }
      : { type: "run_scheduled", data: { key: run.key, runId } };
  });
}

/**
 * Submits the runs that the root reported at its end. The commit that ends the run also creates them, so that they
 * exist if and only if the run has ended. The root's end is in the journal, so a new owner submits them as well.
 */
export function submitNext({ worker, log, state, tenantId }: Omit<EndedRun, "kind">): void {
  for (const run of state.next) log.submit(submissionOf({ worker, state, tenantId }, run));
}

function submissionOf(
  { worker, state, tenantId }: Omit<EndedRun, "log" | "kind">,
  { sessionId, budget, priority, retention, metadata, kind, input, shares, isAlone, ...run }: NextRun,
): Submission {
  const { record } = state.task(root);
  const { agentId, userId, channel } = record;
  const ended = Supervision.fromJSON(record.supervision);
  const runId = idOf(worker, state, run);
  const { record: created, first } = newRun(worker, hostedAgent(worker, agentId), input, {
    runId,
    ...(sessionId !== null && { sessionId: sessionId ?? ended.sessionId }),
    ...(budget !== undefined && { budget, replacesBudget: true }),
    ...(retention !== undefined && { retention }),
    ...(kind !== undefined && { kind }),
    ...(shares !== undefined && childOf(record, shares)),
    priority: priority ?? ended.priority,
    // A resolver makes the agent of a run from what is stored with it, so the next run has what the ended one has.
    metadata: { ...record.metadata, ...metadata },
    ...(channel !== undefined && { channel }),
    ...(userId !== null && { userId }),
    ...(tenantId !== null && { tenantId }),
  });
  return isAlone === true ? { run: created, first, isAlone } : { run: created, first };
}

/** Returns the options of a run that shares the prompt of the root. */
function childOf(
  { supervision: { runId, sessionId }, settings = {} }: TaskRecord,
  { tools, place }: NonNullable<NextRun["shares"]>,
): Pick<NewRunOptions, "child" | "settings"> {
  const { toolChoice: _toolChoice, ...shared } = settings;
  const child = { inherits: { runId, sessionId }, tools, place };
  return Object.keys(shared).length === 0 ? { child } : { child, settings: shared };
}

function idOf(worker: WorkerContext, state: RunState, { key }: Pick<NextRun, "key">): RunId {
  const { record, resumed } = state.task(root);
  return nextRunId(worker.hash, record.supervision.runId, key, resumed);
}
