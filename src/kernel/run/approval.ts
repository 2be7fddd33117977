import type { JsonValue } from "../base/json-value.ts";

/** A question put to a person, durable until answered. `inputDigest` binds the answer to these very arguments. */
export interface ApprovalRequest {
  readonly approvalId: string;
  readonly toolName: string;
  readonly callId: string;
  readonly input: JsonValue;
  readonly inputDigest: string;
  /** Who asks: a permission rule, a tool, a guardrail, an MCP server. */
  readonly reason: string;
}

export type ApprovalDecision =
  /** `input`: run with these arguments instead. `remember`: do not ask this user again for this tool. */
  | {
      readonly decision: "approved";
      readonly input?: JsonValue;
      readonly remember?: boolean;
      readonly by?: string;
    }
  | { readonly decision: "denied"; readonly reason?: string; readonly by?: string }
  /** The call is left out; the model is told so and goes on. */
  | { readonly decision: "skipped"; readonly by?: string };

/** Only what says what is decided: `true`, or a word that is close, has not said what it allows. */
export function isApprovalDecision(value: unknown): value is ApprovalDecision {
  if (typeof value !== "object" || value === null || !("decision" in value)) return false;
  return value.decision === "approved" || value.decision === "denied" || value.decision === "skipped";
}

/** What code inside a run may put to a person: a tool's body that needs to know something, or passes a question on. */
export type PersonQuestion = Omit<ApprovalRequest, "approvalId" | "inputDigest">;
