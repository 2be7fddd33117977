import type { ApprovalDecision, ApprovalRequest } from "./approval.ts";
import type { JsonValue } from "./json.ts";

export interface ApprovalEvents {
  /** A call that was stopped at the gate without asking anyone: by a rule, a hook, an extension, a guardrail or a child's whitelist. */
  permission_deny: {
    readonly callId: string;
    readonly toolName: string;
    readonly by: string;
    readonly reason: string;
  };
  /** A task waits for a person's answer: `run.signal(name, answer, taskId)` gives it. */
  question_ask: { readonly name: string; readonly question: JsonValue };
  approval_request: ApprovalRequest;
  approval_decision: { readonly approvalId: string; readonly decision: ApprovalDecision };
}
