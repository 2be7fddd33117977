import type { Interruption } from "../kernel/index.ts";

/** Interruption reason of an answer that was cut at the output limit. */
export const maxOutput = "max_output";

/** Returns the status of an invocation that ended with this interruption reason. */
export function interruptionStatus(reason: string | null): Interruption["status"] {
  if (reason === maxOutput) return "max_output";
  return reason?.startsWith("max_") === true ? "max_turns" : "failed";
}
