import type { ApprovalDecision, ApprovalRequest } from "./approval.ts";

export interface ApprovalEvents {
  approval_request: ApprovalRequest;
  approval_decision: { readonly approvalId: string; readonly decision: ApprovalDecision };
}
