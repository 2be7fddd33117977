import {
  answerIfLive,
  describeValue,
  Fault,
  type ApprovalDecision,
  type JsonValue,
  type PendingApproval,
  type RunHandle,
  type RunResult,
  type WaitingResult,
} from "../../kernel/index.ts";

/**
 * Answers a question of the run. If the handler throws, the call is denied. It runs in the process that called
 * `invoke` or `stream`; if that process dies, the run waits durably for `run.approve`.
 */
export type OnApprovalHandler = (
  request: PendingApproval,
  run: RunHandle,
) => ApprovalDecision | Promise<ApprovalDecision>;

/** What `invoke` does when the run needs a person's answer. */
export type OnApproval = "wait" | "return" | OnApprovalHandler;

/** Throws for a value of `onApproval` that `owner` does not accept. */
export function checkOnApproval(owner: string, onApproval: unknown, accepts: readonly string[]): void {
  const isAccepted =
    onApproval === undefined ||
    (typeof onApproval === "string" && accepts.includes(onApproval)) ||
    (typeof onApproval === "function" && accepts.includes("a function"));
  if (isAccepted) return;
  throw new Fault(
    "invalid_argument",
    `invalid onApproval ${describeValue(onApproval)} of ${owner}: expected ${accepts.join(", ")}; with submit(), use run.untilPersonIsNeeded() and run.approve()`,
  );
}

/** Waits for the end of a run. With `"return"`, waits until the run needs a person's answer. */
export async function resultOf(
  run: RunHandle,
  onApproval: OnApproval,
): Promise<RunResult<JsonValue> | WaitingResult> {
  if (onApproval === "wait") return run.result();
  if (onApproval !== "return") return answering(run, onApproval)();
  const pendingApprovals = await run.untilPersonIsNeeded();
  const { runId, sessionId, agentId } = run;
  return pendingApprovals.length === 0
    ? run.result()
    : { status: "waiting", pendingApprovals, run, runId, sessionId, agentId };
}

/**
 * Lets a handler answer the questions of a run until the run ends. The returned function waits for the result, and
 * rejects if an answer could not be given.
 */
export function answering(run: RunHandle, handler: OnApprovalHandler): () => Promise<RunResult<JsonValue>> {
  const failed = Promise.withResolvers<never>();
  const fail = (error: unknown): void => failed.reject(error);
  // A reader of a stream may never ask for the result.
  failed.promise.catch(() => undefined);
  answerAll(run, handler, fail).catch(fail);
  return () => Promise.race([run.result(), failed.promise]);
}

/** Asks the handler about each question once. Questions of one turn are asked at the same time. */
async function answerAll(
  run: RunHandle,
  handler: OnApprovalHandler,
  fail: (error: unknown) => void,
): Promise<void> {
  const asked = new Set<string>();
  for await (const event of run.events({ types: ["approval_request"] })) {
    if (event.type !== "approval_request") continue;
    for (const request of await run.pendingApprovals()) {
      // A call of a client-side tool needs a result (`run.toolResult`), and a budget a top-up (`run.topUp`), not a decision.
      const needsMore = request.kind === "client_tool" || request.kind === "top_up";
      if (asked.has(request.approvalId) || needsMore) continue;
      asked.add(request.approvalId);
      answer(run, handler, request).catch(fail);
    }
  }
}

async function answer(run: RunHandle, handler: OnApprovalHandler, request: PendingApproval): Promise<void> {
  await answerIfLive(run, request.approvalId, await decided(run, handler, request));
}

async function decided(
  run: RunHandle,
  handler: OnApprovalHandler,
  request: PendingApproval,
): Promise<ApprovalDecision> {
  try {
    return await handler(request, run);
  } catch (error) {
    return { decision: "denied", reason: `the approval handler failed: ${Fault.from(error).message}` };
  }
}
