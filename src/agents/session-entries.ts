import {
  rootTaskId as root,
  batchEntryId,
  stoppedStem,
  toolCallsOf,
  toolMessage,
  toolResultPart,
  userEntry,
  type AgentSession,
  type ChatMessage,
  type RunContext,
  type SessionChange,
  type ToolResult,
  type Turn,
} from "../kernel/index.ts";

/** The messages of an invocation, as a session stores them. */
export interface MessageBatch {
  readonly changes: readonly SessionChange[];
  readonly leafId: string | null;
}

/** Why an invocation was stopped, and which calls of its last message had a result by then. */
export interface Stopped extends Pick<AgentSession, "settled"> {
  readonly reason: string;
  /** The id of the call whose tool had been executed when the stop came. */
  readonly performed?: string | undefined;
}

/**
 * The session entries of an invocation. Their ids follow from the task and the position, so writing them twice has no
 * effect; the first entry of a root is the user's, which exists since the submission (S2). `place` is the index of the
 * invocation within its task. If `stopped` is set, unanswered calls get a result (S1), and the entries form a branch
 * that is left when the run is resumed and completes.
 */
export function sessionEntries(
  { facts, taskId, agentId }: RunContext,
  { sessionId, leafId: before, at, resumeCount: resumed }: Turn,
  { messages, place }: { readonly messages: readonly ChatMessage[]; readonly place: number },
  stopped?: Stopped,
): MessageBatch {
  if (sessionId === null) return { changes: [], leafId: null };
  const { runId } = facts;
  const opensRun = taskId === root && place === 0;
  const whole = place === 0 ? `${runId}/${taskId}` : `${runId}/${taskId}.${place}`;
  const stem = stopped === undefined ? whole : stoppedStem(whole, resumed);
  const changes: SessionChange[] = [];
  let leafId = before;
  const append = (id: string, message: ChatMessage, where: { readonly atLeaf?: true } = {}): void => {
    const entry = { type: "message", id, parentId: leafId, at, runId, taskId, message } as const;
    changes.push({ type: "append", sessionId, agentId, entry, visibility: "visible", ...where });
    leafId = id;
  };
  const [first] = messages;
  if (opensRun && first?.role === "user") {
    changes.push(userEntry({ sessionId, agentId, runId, at, message: first }, "visible"));
    leafId = runId;
  } else if (opensRun && first !== undefined) append(runId, first, { atLeaf: true });
  const from = opensRun ? 1 : 0;
  const own = messages.slice(from);
  const closing = stopped === undefined ? undefined : unanswered(messages.at(-1), stopped);
  if (closing !== undefined) own.push(closing);
  if (own.length > 0) {
    const said = { runId, taskId, at, parentId: leafId, stem, from, messages: own };
    changes.push({ type: "say", sessionId, agentId, batch: said, visibility: "visible" });
    leafId = batchEntryId(said, own.length - 1);
  }
  return { changes, leafId };
}

/**
 * S1: results for the calls of a message that have none, because no call without a result is ever visible. An executed
 * call is not reported as not executed, because the model would repeat it.
 */
export function unanswered(
  last: ChatMessage | undefined,
  { reason, settled, performed }: Stopped,
): ChatMessage | undefined {
  if (last?.role !== "assistant") return undefined;
  const calls = toolCallsOf(last);
  if (calls.length === 0) return undefined;
  const without = ({ callId }: { readonly callId: string }): ToolResult => ({
    output: { type: "text", text: `[${callId === performed ? "withheld" : "not executed"}: ${reason}]` },
    isError: true,
  });
  return toolMessage(calls.map((call, index) => toolResultPart(call, settled[index] ?? without(call))));
}
