import {
  canonicalJson,
  Fault,
  HistoryRetention,
  missingRun,
  sameCaller,
  type Commit,
  type JsonValue,
  type RunId,
  type RunRecord,
  type Store,
  type TaskId,
  type TaskRecord,
} from "../../kernel/index.ts";
import type { NewRun } from "./new-run.ts";
import type { RunCaller } from "./run-calls.ts";
import { callerWait } from "./wait-names.ts";

/**
 * Checks a repeated submission, which must not return the answer of another run: throws `already_exists` if user,
 * tenant, agent or input differ from those of the first submission. The input is not compared if it is not kept.
 */
export async function refuseOther(
  store: Store,
  existing: RunRecord,
  { record, first }: NewRun,
): Promise<void> {
  const { runId, agentId } = existing;
  if (!sameCaller(existing, record)) throw takenRunId(runId);
  const isOtherAgent = agentId !== record.agentId;
  const root = isOtherAgent ? undefined : await readRootTask(store, runId);
  if (!isOtherAgent && (root === undefined || root.supervision.retention === HistoryRetention.NONE)) return;
  if (root !== undefined && canonicalJson(asked(root)) === canonicalJson(asked(createdTask(first)))) return;
  const difference = isOtherAgent
    ? `is a run of ${agentId}`
    : "was submitted with another input or other changes";
  throw new Fault("already_exists", `${runId} ${difference}: choose another id, or omit it`, {
    details: { runId, agentId },
  });
}

/** Creates the fault for a chosen id that already belongs to a run of another user. */
export function takenRunId(runId: RunId): Fault {
  return new Fault("already_exists", `${runId} belongs to another user: choose another id, or omit it`, {
    details: { runId },
  });
}

/** What a submission asks of the agent. */
function asked(root: TaskRecord | undefined): JsonValue {
  return [
    root?.input ?? null,
    root?.addedInstructions ?? null,
    (root?.changes as unknown as JsonValue) ?? null,
  ];
}

/** Returns the root task, which the first commit of a run creates. */
async function readRootTask({ journal }: Store, runId: RunId): Promise<TaskRecord | undefined> {
  for await (const commit of journal.read(runId)) return createdTask(commit);
  return undefined;
}

function createdTask({ tasks = [] }: Commit): TaskRecord | undefined {
  for (const change of tasks) if (change.type === "create") return change.task;
  return undefined;
}

/** The input in the first commit of a run, and the run that has started it. */
export interface FirstRequest {
  readonly input: JsonValue;
  readonly caller: RunCaller | undefined;
}

/** Reads the first commit of a run. Throws `not_found` if the run does not exist in this tenant. */
export async function readRequest(
  { journal }: Store,
  runId: RunId,
  tenantId: string | null,
): Promise<FirstRequest> {
  const found = await journal.find(runId);
  if (found?.tenantId === tenantId)
    for await (const commit of journal.read(runId)) {
      const { resolves = [] } = commit;
      const caller = resolves.find(({ wait }) => wait === callerWait)?.value;
      return {
        input: createdTask(commit)?.input ?? null,
        caller: caller as unknown as RunCaller | undefined,
      };
    }
  throw missingRun(runId);
}

/** The task of another run that has started a run, and the first of the runs that have started each other up to it. */
export interface RunStarter {
  readonly runId: RunId;
  readonly taskId: TaskId;
  readonly rootId: RunId;
}

/** Returns what has started a run. `undefined` if no other run has. */
export async function findStarter(
  store: Store,
  { runId, tenantId }: Pick<RunRecord, "runId" | "tenantId">,
): Promise<RunStarter | undefined> {
  const { caller } = await readRequest(store, runId, tenantId);
  if (caller?.above === undefined) return undefined;
  return { runId: caller.runId, taskId: caller.taskId, rootId: caller.above.at(-1) ?? caller.runId };
}
