import type { ApprovalDecision, ApprovalRequest } from "../run/approval.ts";

export interface ApprovalEvents {
  /** A call that was stopped at the gate without asking anyone: by a rule, a hook, an extension, a guardrail or a child's whitelist. */
  permission_deny: {
    readonly callId: string;
    readonly toolName: string;
    readonly by: string;
    readonly reason: string;
  };
  approval_request: ApprovalRequest;
  approval_decision: { readonly approvalId: string; readonly decision: ApprovalDecision };
}
