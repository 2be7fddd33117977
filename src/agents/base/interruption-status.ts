import {
  Fault,
  type InterruptedStatus,
  type Interruption,
  type RunStatus,
  performedBefore,
} from "../../kernel/index.ts";

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

/** Why an invocation was stopped. */
export interface Stop {
  readonly status: InterruptedStatus;
  readonly interruptionReason: string;
  /** Id of the call whose tool had already been executed when the invocation was stopped. */
  readonly performed?: string | undefined;
  /** The guardrail or middleware that stopped the invocation. */
  readonly by?: string | undefined;
}

/**
 * S1: returns how an error stops an invocation, which then ends like a completed one. `undefined` for an error that
 * makes the invocation fail; it can then be resumed and does not end in the session.
 */
export function stopOf(error: unknown): Stop | undefined {
  const fault = Fault.from(error);
  const { code, message: interruptionReason, details } = fault;
  if (code === "cancelled") {
    const status = details?.["status"] === "deadline_exceeded" ? "deadline_exceeded" : "cancelled";
    return { status, interruptionReason };
  }
  if (code !== "budget_exhausted" && code !== "guardrail_tripped") return undefined;
  const by = typeof details?.["by"] === "string" ? details["by"] : undefined;
  return { status: code, interruptionReason, performed: performedBefore(fault), by };
}
