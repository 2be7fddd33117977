import type { RunFactsView, TaskView } from "./run-view.ts";

/** The statuses of runs and tasks, in the words of the page. */
export const statusWords: Readonly<Record<RunFactsView["status"] | TaskView["status"], string>> = {
  pending: "Waits for a worker",
  running: "Running",
  waiting: "Waits",
  pausing: "Pausing",
  paused: "Paused",
  completed: "Done",
  cancelled: "Cancelled",
  failed: "Failed",
  max_turns: "Stopped at its turns",
  max_output: "Stopped at its output limit",
  budget_exhausted: "Stopped at its allowance",
  deadline_exceeded: "Stopped at its deadline",
  guardrail_tripped: "Stopped by a guardrail",
};
