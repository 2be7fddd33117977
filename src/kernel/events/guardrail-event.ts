import type { Failure } from "../base/fault.ts";
import type { GuardrailDecision, GuardrailStage } from "../run/guardrail-decision.ts";

export interface GuardrailEvents {
  /** A decision other than allow. */
  guardrail_decision: {
    readonly guardrail: string;
    readonly stage: GuardrailStage;
    readonly decision: Exclude<GuardrailDecision["decision"], "allow">;
    readonly reason: string;
    readonly callId?: string;
  };
  /** Its own error is not a stop (S4). */
  guardrail_error: { readonly guardrail: string; readonly stage: GuardrailStage; readonly failure: Failure };
}
