import type { Failure } from "../base/fault.ts";
import type { GuardrailDecision, GuardrailStage } from "../run/guardrail-decision.ts";

/** Events of guardrails. */
export interface GuardrailEvents {
  /** A guardrail decided something other than `allow`. */
  guardrail_decision: {
    readonly guardrail: string;
    readonly stage: GuardrailStage;
    readonly decision: Exclude<GuardrailDecision["decision"], "allow">;
    readonly reason: string;
    readonly callId?: string;
  };
  /** A guardrail threw an error. The error itself does not stop the run (S4). */
  guardrail_error: { readonly guardrail: string; readonly stage: GuardrailStage; readonly failure: Failure };
}
