/**
 * The decision of a guardrail. S4: a guardrail that throws has not decided; the error is recorded, and `onError` of the
 * guardrail determines whether it counts as `block` or `allow`.
 *
 * | stage | warn | block | halt |
 * |---|---|---|---|
 * | input | recorded | the invocation ends as `guardrail_tripped` before any call is paid | like `block` |
 * | tool_call | recorded | the call is not executed; the model gets an error result with the reason | the run stops |
 * | tool_result | the reason is appended to the result | the result is **withheld**: the call took place and stays
 * recorded, but the model gets an error result with the reason (trap O6) | the run stops |
 * | output | recorded | the output is withheld: `output` is the reason, status `guardrail_tripped` | like `block` |
 */
export type GuardrailDecision =
  | { readonly decision: "allow" }
  | { readonly decision: "warn" | "block" | "halt"; readonly reason: string };

/** The place at which a guardrail decides: the input, a tool call, a tool result or the output. */
export type GuardrailStage = "input" | "tool_call" | "tool_result" | "output";

/** What an error of a guardrail counts as. */
export type OnGuardrailError = "block" | "allow";
