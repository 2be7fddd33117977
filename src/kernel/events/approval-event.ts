import type { ApprovalDecision, ApprovalRequest } from "../run/approval.ts";

/** Events of the tool gate. */
export interface ApprovalEvents {
  /**
   * The gate denied a tool call without asking a person. `by` names what denied the call: a rule, a hook, an extension,
   * a guardrail or the tool list of a child.
   */
  permission_deny: {
    readonly callId: string;
    readonly toolName: string;
    readonly by: string;
    readonly reason: string;
  };
  /** A person is asked. */
  approval_request: ApprovalRequest;
  /** A person answered. */
  approval_decision: { readonly approvalId: string; readonly decision: ApprovalDecision };
}
