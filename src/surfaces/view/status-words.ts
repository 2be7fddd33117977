import type { Failure, WaitCause } from "../../kernel/index.ts";
import type { RunFactsView, TaskView } from "./run-view.ts";

/** The page's words for the statuses of runs and tasks. */
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
  budget_exhausted: "Stopped at its budget",
  deadline_exceeded: "Stopped at its deadline",
  guardrail_tripped: "Stopped by a guardrail",
};

const limitWords: Readonly<Record<string, string>> = {
  turns: statusWords.max_turns,
  tokens: "Stopped at its tokens",
  seats: "Stopped at its seats",
  cap: "Stopped at a spending cap",
};

/**
 * Returns the limit that an error names: a dimension of a budget, or `cap` for a spending cap. `null` if it names
 * no limit.
 */
export function limitOf({ details }: Pick<Failure, "details">): string | null {
  const { dimension, cap } = details ?? {};
  if (cap !== undefined) return "cap";
  return typeof dimension === "string" ? dimension : null;
}

/** Describes the status of a run or a task. If a limit stopped it, the text names this limit. */
export function endWordAt(status: keyof typeof statusWords, limit: string | null): string {
  const words = status === "budget_exhausted" && limit !== null ? limitWords[limit] : undefined;
  return words ?? statusWords[status];
}

/** The page's words for the causes for which a run or a task waits. */
export const causeWords: Readonly<Record<WaitCause, string>> = {
  person: "Waits for you",
  signal: "Waits for a signal",
  time: "Sleeps",
  message: "Waits for a reply",
  run: "Waits for another run",
  seat: "Waits for a seat",
  budget: "Waits for money",
  cap: "Waits for money",
  worker: "Waits for a worker",
  queue: "Waits for its turn",
  compaction: "Waits for a summary",
  crash_loop: "Paused: it ends its processes",
  host: "Waits for its machine",
};

/** Whether a task without a seat waits for a person, because it has requested a top-up. */
export function isAsking({ status, questions, yieldsTo }: TaskView): boolean {
  return status === "paused" && questions > 0 && yieldsTo === null;
}

/** Whether a task or run has a question that waits for a person. */
export function hasQuestion(status: RunFactsView["status"] | TaskView["status"], questions: number): boolean {
  return questions > 0 && (status === "waiting" || status === "running");
}

/** Describes the status of a task: what it waits for, or the limit that stopped it. */
export function taskWord(task: TaskView): string {
  const { status, questions, stoppedAt } = task;
  return hasQuestion(status, questions) || isAsking(task) ? causeWords.person : endWordAt(status, stoppedAt);
}
