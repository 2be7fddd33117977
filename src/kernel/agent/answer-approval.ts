import { Fault } from "../base/fault.ts";
import type { ApprovalDecision } from "../run/approval.ts";
import type { RunHandle } from "./run-handle.ts";

/** Answers an approval request of a run that may end meanwhile. Does nothing if the run has ended. */
export async function answerIfLive(
  run: Pick<RunHandle, "approve">,
  approvalId: string,
  decision: ApprovalDecision,
): Promise<void> {
  try {
    await run.approve(approvalId, decision);
  } catch (error) {
    const hasEnded = Fault.is(error) && error.code === "not_found" && error.details?.["status"] !== undefined;
    if (!hasEnded) throw error;
  }
}
