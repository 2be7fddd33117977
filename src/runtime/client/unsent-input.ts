import {
  Fault,
  HistoryRetention,
  parseRunId,
  type Failure,
  type Hash,
  type HostedAgent,
  type JsonObject,
  type JsonValue,
  type RunChanges,
  type RunId,
  type RunSummary,
  type SessionId,
  type Store,
  type StoredChanges,
  type SubmitOptions,
  type TaskRecord,
  type TenantScope,
  type UnsentInput,
} from "../../kernel/index.ts";

export interface ResendOptions {
  readonly hash: Hash;
  /** S6: the tenant and user to which all calls are restricted. */
  readonly scope?: TenantScope;
}

/** What `resend` submits. */
export interface Resubmission {
  readonly run: RunSummary;
  readonly input: JsonValue;
  readonly options: SubmitOptions;
}

/**
 * S1, S2: returns the inputs of failed runs whose entries are still pending. Runs that unread mail may resume, and
 * runs whose input was sent again, are left out.
 */
export async function unsentInputs(
  store: Store,
  sessionId: SessionId,
  { hash, scope }: ResendOptions,
): Promise<readonly UnsentInput[]> {
  const unsent: UnsentInput[] = [];
  for (const { entry, visibility } of await store.sessions.read(sessionId, { onlyUnseen: true })) {
    const { runId } = entry;
    if (visibility !== "pending" || runId === null) continue;
    if ((await store.journal.find(runId, scope)) === undefined) continue;
    const run = await store.journal.summary(runId);
    if (run?.status !== "failed" || (await store.mailbox.read(runId)).length > 0) continue;
    if ((await store.journal.find(resentRunId(hash, runId))) !== undefined) continue;
    const { input, error } = await readFailedRun(store, runId);
    unsent.push({ run, input, error });
  }
  return unsent;
}

/**
 * Returns the agent, the input and the options with which to submit a failed run again. Throws `not_found` and
 * `invalid_argument`.
 */
export async function resubmissionOf(
  store: Store,
  runId: RunId,
  find: (agentId: HostedAgent["id"]) => HostedAgent,
  { hash, scope }: ResendOptions,
): Promise<Resubmission> {
  const isThere = (await store.journal.find(runId, scope)) !== undefined;
  const run = isThere ? await store.journal.summary(runId) : undefined;
  if (run === undefined) throw new Fault("not_found", `run ${runId} does not exist in this store`);
  if (run.status !== "failed")
    throw new Fault(
      "invalid_argument",
      `run ${runId} is ${run.status}: only the input of a failed run can be sent again`,
      { details: { runId, status: run.status } },
    );
  const { sessionId } = run;
  if (run.kind !== "invocation" || sessionId === undefined)
    throw new Fault(
      "invalid_argument",
      `run ${runId} is a ${run.kind}: only the input of an invocation can be sent again`,
      { details: { runId, kind: run.kind } },
    );
  if ((await store.mailbox.read(runId)).length > 0)
    throw new Fault(
      "agent_busy",
      `the input of run ${runId} cannot be sent again yet: no worker has read the commands of the run, which may resume it; wait for its result`,
      { details: { runId } },
    );
  const { task, input } = await readFailedRun(store, runId);
  const { userId, tenantId, priority, metadata } = run;
  const { supervision, budget, channel, settings, addedInstructions, changes, streaming } = task;
  const isKept = supervision.retention === HistoryRetention.PERMANENT;
  if (isKept && (await store.sessions.find(sessionId, scope)) === undefined)
    throw new Fault(
      "not_found",
      `the input of run ${runId} cannot be sent again: session ${sessionId} was deleted; submit it to another session`,
      { details: { runId, sessionId } },
    );
  return {
    run,
    input: withoutHistory(find(run.agentId), input),
    options: {
      runId: resentRunId(hash, runId),
      sessionId,
      priority,
      metadata,
      budget,
      streaming,
      retention: supervision.retention,
      ...(userId !== null && { userId }),
      ...(tenantId !== null && { tenantId }),
      ...(channel !== undefined && { channel }),
      ...(settings !== undefined && { settings }),
      ...(addedInstructions !== undefined && { addedInstructions }),
      ...(changes !== undefined && { changes: callerChanges(changes) }),
    },
  };
}

/** The changes in the form in which a caller gives them. */
function callerChanges({ model, ...changes }: StoredChanges): RunChanges {
  return { ...changes, ...(model !== undefined && { model: `${model.provider}/${model.modelId}` }) };
}

/**
 * Returns the id of the run that sends an input again. It is always the same, so that a repeated `resend` starts no
 * second run. It is a hash, because an id with an added suffix would become too long when inputs fail several
 * times.
 */
function resentRunId(hash: Hash, runId: RunId): RunId {
  return parseRunId(`run_again-${hash(runId)}`);
}

/**
 * Throws `already_exists` if the input of a run was sent again. If the run were continued, it would answer the
 * input a second time.
 */
export async function refuseIfResent(
  { journal }: { readonly journal: Pick<Store["journal"], "find"> },
  runId: RunId,
  hash: Hash,
): Promise<void> {
  const resent = resentRunId(hash, runId);
  if ((await journal.find(resent)) === undefined) return;
  throw new Fault(
    "already_exists",
    `run ${runId} cannot be continued: its input was sent again as ${resent}; use that run`,
    { details: { runId, resent } },
  );
}

async function readFailedRun(
  { journal }: Store,
  runId: RunId,
): Promise<{ readonly task: TaskRecord; readonly input: JsonValue; readonly error: Failure | null }> {
  let task: TaskRecord | undefined;
  let error: Failure | null = null;
  for await (const { tasks = [] } of journal.read(runId)) {
    for (const change of tasks) {
      if (change.type === "create") task ??= change.task;
      if (change.type === "end" && change.taskId === task?.taskId) error = change.outcome.failure;
    }
  }
  if (task === undefined) throw new Fault("not_found", `the first commit of ${runId} no longer exists`);
  return { task, input: task.input, error };
}

/** Returns the input without earlier messages, because the failed run has already added them to the session. */
function withoutHistory(agent: HostedAgent, input: JsonValue): JsonValue {
  const message = agent.historyOf?.(input) === undefined ? undefined : agent.messageOf?.(input);
  if (message === undefined) return input;
  const { messages: _messages, ...rest } = input as JsonObject;
  return { ...rest, prompt: message.content as unknown as JsonValue };
}
