/**
 * Why a model stopped. `length` means that it reached the output limit, `content_blocked` that the provider withheld
 * the answer. A call that failed or was cut off has no stop reason; it is an error.
 */
export type StopReason = "stop" | "length" | "tool_calls" | "content_blocked" | "other";
