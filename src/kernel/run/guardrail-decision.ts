/**
 * What a guardrail decides. A value: a guardrail that throws is recorded and has decided nothing (S4).
 *
 * | stage | warn | block | halt |
 * |---|---|---|---|
 * | input | noted | refused: the invocation ends as `guardrail_tripped`, nothing is paid | the same |
 * | tool_call | noted | not executed; the model gets an error result with the reason | the run stops |
 * | tool_result | the reason is added to the result | **withheld**: the call happened and stays recorded, the model gets an error result with the reason in its place (trap O6) | the run stops |
 * | output | noted | withheld: `output` is the reason, status `guardrail_tripped` | the same |
 */
export type GuardrailDecision =
  | { readonly decision: "allow" }
  | { readonly decision: "warn" | "block" | "halt"; readonly reason: string };

export type GuardrailStage = "input" | "tool_call" | "tool_result" | "output";
