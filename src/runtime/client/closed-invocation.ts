import {
  Fault,
  readProperty,
  rootTaskId as root,
  type AgentId,
  type Journal,
  type RunRecord,
  type RuntimeSessions,
  type SessionId,
  type StepRecord,
  type TaskRecord,
  type TenantScope,
} from "../../kernel/index.ts";

/** The run of the last closed invocation of a session, with its root task as it was created. */
export interface ClosedInvocation {
  readonly run: RunRecord;
  readonly task: TaskRecord;
}

export interface ClosedInvocationQuery {
  readonly journal: Journal;
  readonly sessions: Pick<RuntimeSessions, "path">;
  readonly agentId: AgentId;
  readonly sessionId: SessionId;
  /** S6: the scope of the caller. If absent, the caller sees all runs. */
  readonly scope: TenantScope | undefined;
}

/**
 * Returns the last closed invocation of an agent on the path of a session. Invocations whose input an extension has
 * handled are skipped. Throws `not_found`.
 */
export async function lastClosedInvocation(query: ClosedInvocationQuery): Promise<ClosedInvocation> {
  const { journal, sessions, agentId, sessionId, scope } = query;
  const path = await sessions.path(sessionId);
  const runs = new Set(
    path.toReversed().flatMap(({ runId, taskId }) => (taskId === root && runId ? [runId] : [])),
  );
  for (const runId of runs) {
    const run = await journal.find(runId, scope);
    const task =
      run?.agentId === agentId && run.kind === "invocation" ? await readRootTask(journal, run) : undefined;
    if (run !== undefined && task !== undefined) return { run, task };
  }
  throw new Fault(
    "not_found",
    `session ${sessionId} has no closed invocation of ${agentId} whose prompt a child could share; invoke the agent in the session first`,
    { details: { sessionId, agentId } },
  );
}

/**
 * Returns the root task, which the first commit of a run creates. `undefined` if an extension has handled the last
 * input of the run, because no model was called for it.
 */
async function readRootTask(journal: Journal, { runId }: RunRecord): Promise<TaskRecord | undefined> {
  let task: TaskRecord | undefined;
  let isHandled = false;
  for await (const { tasks = [], steps = [] } of journal.read(runId)) {
    for (const change of tasks) if (change.type === "create") task ??= change.task;
    for (const step of steps) if (step.taskId === root && step.kind === "turn") isHandled = wasHandled(step);
  }
  return isHandled ? undefined : task;
}

function wasHandled({ outcome }: StepRecord): boolean {
  return outcome.kind === "ok" && readProperty(outcome.value, "handled") !== undefined;
}
