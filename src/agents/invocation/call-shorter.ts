import { rootTaskId, type LlmReply, type LlmRequest, type SessionId } from "../../kernel/index.ts";
import { isOverflow, shortenTranscript } from "../context/compaction/overflow.ts";
import { summaryRole } from "../context/compaction/summary-role.ts";
import type { InvocationParts, InvocationScope } from "./invocation-scope.ts";

/**
 * Calls the model again with a shorter transcript, because the request exceeded the context window. If this was the
 * invocation's own session, it also requests a compaction, because the next invocation would start with the same
 * conversation.
 */
export async function callShorter(
  { plan: { compaction }, ctx: own }: InvocationParts,
  { ctx, history }: InvocationScope,
  fault: unknown,
  request: LlmRequest,
  sessionId: SessionId | undefined,
): Promise<LlmReply> {
  if (!isOverflow(fault) || compaction === null) throw fault;
  const transcript =
    sessionId === undefined
      ? await shortenTranscript({ ctx, plan: compaction, role: summaryRole }, request.transcript)
      : await history.shorten?.(sessionId);
  if (transcript === null || transcript === undefined) throw fault;
  if (sessionId === own.facts.sessionId && ctx.taskId === rootTaskId) ctx.requestCompaction();
  return ctx.llm({ ...request, transcript });
}
