import { Fault } from "../base/fault.ts";
import type { ApprovalDecision } from "../run/approval.ts";
import type { RunHandle } from "./run-handle.ts";

/**
 * Answers an approval request of a run that may end meanwhile, or that another person may answer first. Does nothing in
 * these cases.
 */
export async function answerIfLive(
  run: Pick<RunHandle, "approve">,
  approvalId: string,
  decision: ApprovalDecision,
): Promise<void> {
  try {
    await run.approve(approvalId, decision);
  } catch (error) {
    if (!Fault.is(error)) throw error;
    const hasEnded = error.code === "not_found" && error.details?.["status"] !== undefined;
    if (!hasEnded && error.code !== "already_exists") throw error;
  }
}
