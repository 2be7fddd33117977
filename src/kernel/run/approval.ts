import type { JsonValue } from "../base/json-value.ts";

/** A question to a person. It is durable until it is answered. */
export interface ApprovalRequest {
  /** Id of the request. Pass it to `RunHandle.approve`. */
  readonly approvalId: string;
  /** Name of the tool to approve. */
  readonly toolName: string;
  /** Id that the provider gave the call. */
  readonly callId: string;
  /** Arguments of the call. */
  readonly input: JsonValue;
  /** Digest of `input`. Binds the answer to these arguments. */
  readonly inputDigest: string;
  /** Why a person is asked: the permission rule, tool, guardrail or MCP server that requires the approval. */
  readonly reason: string;
}

/** A person's answer to an `ApprovalRequest`. `by` names the person. */
export type ApprovalDecision =
  /**
   * Runs the call. `input` replaces its arguments. `remember` approves later calls of this tool for this user as well.
   */
  | {
      readonly decision: "approved";
      readonly input?: JsonValue;
      readonly remember?: boolean;
      readonly by?: string;
    }
  /** Does not run the call. The model receives an error with the reason. */
  | { readonly decision: "denied"; readonly reason?: string; readonly by?: string }
  /** Does not run the call. The model is informed and continues. */
  | { readonly decision: "skipped"; readonly by?: string };

/**
 * Whether a value is a valid decision. Any other value, such as `true` or a misspelt word, does not count as an
 * approval.
 */
export function isApprovalDecision(value: unknown): value is ApprovalDecision {
  if (typeof value !== "object" || value === null || !("decision" in value)) return false;
  return value.decision === "approved" || value.decision === "denied" || value.decision === "skipped";
}

/** The question of `ctx.approval`: code inside a run, such as a tool's body, asks a person. */
export type PersonQuestion = Omit<ApprovalRequest, "approvalId" | "inputDigest">;
