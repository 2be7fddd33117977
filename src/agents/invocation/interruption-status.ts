import type { Interruption, RunStatus } from "../../kernel/index.ts";

/** Interruption reason of an answer that was cut at the output limit. */
export const maxOutput = "max_output";

/** Returns the status of an invocation that ended with this interruption reason. */
export function interruptionStatus(reason: string | null): Interruption["status"] {
  if (reason === maxOutput) return "max_output";
  return reason?.startsWith("max_") === true ? "max_turns" : "failed";
}

/** Whether a status means that the agent ended without completing. */
export function isInterruption(status: RunStatus): status is Interruption["status"] {
  return interruptions.has(status);
}

const interruptions: ReadonlySet<RunStatus> = new Set<Interruption["status"]>([
  "max_turns",
  "max_output",
  "guardrail_tripped",
  "failed",
]);
