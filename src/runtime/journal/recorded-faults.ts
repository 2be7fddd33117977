import { CancellationError, Fault, type PromiseOutcome } from "../../kernel/index.ts";

/** Whether the fault is an outcome of a step, which a replay returns again. */
export function isOutcome(fault: Fault): boolean {
  if (fault instanceof CancellationError) return false;
  return fault.code !== "lease_lost" && fault.code !== "journal_mismatch";
}

/**
 * Returns what a rejected promise throws. A cancel and faults of the journal cannot be recorded, so that they
 * become fatal errors.
 */
export function rejectionOf(error: unknown): PromiseOutcome {
  const fault = Fault.from(error);
  const failure = fault.toJSON();
  return { status: "rejected", failure: isOutcome(fault) ? failure : { ...failure, code: "fatal" } };
}
