import type { Failure } from "../../kernel/index.ts";
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

const limitWords: Readonly<Record<string, string>> = {
  turns: statusWords.max_turns,
  tokens: "Stopped at its tokens",
  seats: "Stopped at its seats",
  cap: "Stopped at a spending cap",
};

/** The limit that an error names: a dimension of a budget, or `cap` for a spending cap. `null` if it names none. */
export function limitOf({ details }: Pick<Failure, "details">): string | null {
  const { dimension, cap } = details ?? {};
  if (cap !== undefined) return "cap";
  return typeof dimension === "string" ? dimension : null;
}

/** How a run or a task stands or ended, in words that name the limit which stopped it. */
export function endWordAt(status: keyof typeof statusWords, limit: string | null): string {
  const words = status === "budget_exhausted" && limit !== null ? limitWords[limit] : undefined;
  return words ?? statusWords[status];
}
