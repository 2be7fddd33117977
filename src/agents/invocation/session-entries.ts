import {
  rootTaskId as root,
  batchEntryId,
  stoppedStem,
  userEntry,
  type ChatMessage,
  type RunContext,
  type SessionChange,
  type Turn,
} from "../../kernel/index.ts";

/** The messages of an invocation in the form in which a session stores them. */
export interface MessageBatch {
  readonly changes: readonly SessionChange[];
  readonly leafId: string | null;
}

/** What an invocation adds to its session. */
interface InvocationMessages {
  readonly messages: readonly ChatMessage[];
  /** The index of the invocation within its task, from 0. */
  readonly place: number;
  /** Whether an error stopped the invocation, so that the run can be resumed. */
  readonly isStopped: boolean;
}

/**
 * S1: returns the entries of an invocation whose input was refused. The user's message is removed, so that no later
 * turn contains it. Messages of earlier invocations of the task are kept.
 */
export function refusedEntries(
  { facts: { runId }, taskId }: RunContext,
  { sessionId, leafId }: Turn,
  place: number,
): MessageBatch {
  if (sessionId === null || taskId !== root || place > 0) return { changes: [], leafId };
  return { changes: [{ type: "remove", sessionId, runId, taskId }], leafId };
}

/**
 * Returns the session entries of an invocation. Their ids follow from the task and the position, so that writing
 * them twice has no effect. The first entry of a root is the user's, which exists since the submission (S2). The
 * entries of a stopped invocation form a branch, which the session leaves when the run is resumed and completes.
 */
export function sessionEntries(
  { facts, taskId, agentId }: RunContext,
  { sessionId, leafId: before, at, resumeCount: resumed, isTransformed }: Turn,
  { messages, place, isStopped }: InvocationMessages,
): MessageBatch {
  if (sessionId === null) return { changes: [], leafId: null };
  const { runId } = facts;
  const opensRun = taskId === root && place === 0;
  const whole = place === 0 ? `${runId}/${taskId}` : `${runId}/${taskId}.${place}`;
  const stem = isStopped ? stoppedStem(whole, resumed) : whole;
  const changes: SessionChange[] = [];
  let leafId = before;
  const append = (id: string, message: ChatMessage, where: { readonly atLeaf?: true } = {}): void => {
    const entry = { type: "message", id, parentId: leafId, at, runId, taskId, message } as const;
    changes.push({ type: "append", sessionId, agentId, entry, visibility: "visible", ...where });
    leafId = id;
  };
  const [first] = messages;
  if (opensRun && first?.role === "user") {
    // The submission has stored the message before an extension replaced it.
    if (isTransformed) changes.push({ type: "remove", sessionId, runId, taskId });
    changes.push(userEntry({ sessionId, agentId, runId, at, message: first }, "visible"));
    leafId = runId;
  } else if (opensRun && first !== undefined) append(runId, first, { atLeaf: true });
  const from = opensRun ? 1 : 0;
  const own = messages.slice(from);
  if (own.length > 0) {
    const said = { runId, taskId, at, parentId: leafId, stem, from, messages: own };
    changes.push({ type: "say", sessionId, agentId, batch: said, visibility: "visible" });
    leafId = batchEntryId(said, own.length - 1);
  }
  return { changes, leafId };
}
