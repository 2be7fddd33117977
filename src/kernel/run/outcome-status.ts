import type { TaskOutcome } from "./task-outcome.ts";
import type { RunStatus } from "./run-result.ts";

/** Returns the run status for a task's outcome. `null` means that the task has not ended and gives `paused`. */
export function outcomeStatus(
  outcome: (Pick<TaskOutcome, "status" | "interruption"> & Partial<Pick<TaskOutcome, "failure">>) | null,
): RunStatus {
  if (outcome === null || outcome.status === "paused") return "paused";
  if (outcome.status === "completed") return outcome.interruption?.status ?? "completed";
  const { failure } = outcome;
  if (failure?.code === "budget_exhausted") return "budget_exhausted";
  if (failure?.code === "guardrail_tripped") return "guardrail_tripped";
  if (failure?.code === "cancelled")
    return failure.details?.["status"] === "deadline_exceeded" ? "deadline_exceeded" : "cancelled";
  return "failed";
}
