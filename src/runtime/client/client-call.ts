import { Fault, type Commit, type RunId, type TaskId } from "../../kernel/index.ts";
import type { RunStore } from "./run-store.ts";
import { approvalWait } from "../journal/wait-names.ts";

/** A call of a client-side tool for whose result a run waits or has waited. */
interface RequestedCall {
  /** Id of the request. */
  readonly approvalId: string;
  /** Sequence number (`seq`) of the event with which the run asked for the result. */
  readonly seq: number;
  readonly taskId: TaskId;
}

/**
 * The calls of client-side tools that have the same call id, by the id of the request with which the run waits for
 * the result.
 */
interface RequestedCalls {
  /** The calls whose tasks have not ended. */
  readonly live: Map<string, RequestedCall>;
  readonly answered: Set<string>;
}

/**
 * Returns the request with which a run waits for the result of a client-side tool. `callId` is the id of the call
 * or of the request. A provider may repeat a call id: then the first call without a result is meant, or the last
 * call if all have results. Throws `not_found` if no task of the run waits, or has waited, for such a call. Costs
 * O(commits of the run).
 */
export async function findClientCall(store: RunStore, runId: RunId, callId: string): Promise<RequestedCall> {
  const calls: RequestedCalls = { live: new Map(), answered: new Set() };
  // Read first: the commit that consumes a mail records its effect, which is then read from the journal.
  for (const { body } of await store.mailbox.read(runId))
    if (body.type === "approval") calls.answered.add(approvalWait(body.approvalId));
  for await (const commit of store.journal.read(runId)) note(commit, callId, calls);
  const live = [...calls.live.values()];
  const found = live.find(({ approvalId: id }) => !calls.answered.has(approvalWait(id))) ?? live.at(-1);
  if (found !== undefined) return found;
  throw new Fault(
    "not_found",
    `run ${runId} has no call ${JSON.stringify(callId)} of a client-side tool; use the callId of an approval_request event with the kind client_tool`,
    { details: { runId, callId } },
  );
}

function note(
  { events = [], resolves = [] }: Commit,
  callId: string,
  { live, answered }: RequestedCalls,
): void {
  for (const { wait } of resolves) answered.add(wait);
  for (const event of events) {
    if (event.type === "task_end") {
      for (const [id, { taskId }] of live) if (taskId === event.taskId) live.delete(id);
    } else if (event.type === "approval_request") {
      const { approvalId, kind, callId: requested } = event.data;
      if (kind === "client_tool" && (requested === callId || approvalId === callId))
        live.set(approvalId, { approvalId, seq: event.seq, taskId: event.taskId });
    }
  }
}
