/**
 * Why a model stopped. A call that failed or was interrupted has no stop reason; it is an error.
 *
 * - `length`: the answer reached the output limit. Its last tool call may be incomplete.
 * - `content_blocked`: the provider withheld the answer, or the model refused to give one.
 * - `pause`: the provider paused a long turn. The same request with the message appended continues it.
 * - `malformed_call`: the model wrote a tool call that the provider could not read. The message lacks it.
 */
export type StopReason =
  | "stop"
  | "length"
  | "tool_calls"
  | "content_blocked"
  | "pause"
  | "malformed_call"
  | "other";

/** Why the model stopped that gave the final answer of a run. */
export type FinishReason = Extract<
  StopReason,
  "stop" | "length" | "content_blocked" | "tool_calls" | "other"
>;

/** Returns the finish reason for a stop reason. Reasons after which a run does not end normally become `other`. */
export function finishReasonOf(reason: StopReason): FinishReason {
  return reason === "pause" || reason === "malformed_call" ? "other" : reason;
}
