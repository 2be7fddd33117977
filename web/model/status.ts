import type { Failure } from "../../src/kernel/index.ts";
import {
  causeWords,
  endWordAt,
  hasQuestion,
  isAsking,
  limitOf,
  statusWords as words,
} from "../../src/surfaces/view/status-words.ts";
import type { TaskView, RunFactsView } from "../../src/surfaces/view/run-view.ts";
import type { Asking } from "../api/runs-feed.ts";
import type { Run } from "../api/types.ts";

/** The look of a status. Each status has a different glyph, so that the colour is not necessary to recognize it. */
export type Look =
  | "running"
  | "waits"
  | "suspended"
  | "paused"
  | "pending"
  | "completed"
  | "failed"
  | "cancelled";

type TaskStatus = TaskView["status"];
type RunStatus = RunFactsView["status"];
type ListedRun = Pick<Run, "runId" | "status" | "waitsFor" | "host">;

/**
 * Returns the look for the status of a task or a run. `questions` is the number of questions that wait for a
 * person.
 */
export function lookOf(status: TaskStatus | RunStatus, questions = 0): Look {
  switch (status) {
    case "running":
      return questions > 0 ? "waits" : "running";
    case "waiting":
      return questions > 0 ? "waits" : "suspended";
    case "pausing":
    case "paused":
      return "paused";
    case "pending":
      return "pending";
    case "completed":
      return "completed";
    case "cancelled":
      return "cancelled";
    default:
      return "failed";
  }
}

/** Returns the look of a task. An agent that waits for its reports is shown as active. */
export function lookOfTask(task: TaskView): Look {
  const { status, questions, waitsFor } = task;
  if (isAsking(task)) return "waits";
  const isForReports = status === "waiting" && waitsFor.some((name) => name.startsWith("join "));
  return isForReports && questions === 0 ? "running" : lookOf(status, questions);
}

/** Whether the model of a task may be writing: the task has not ended, and neither waits nor is paused. */
export function mayWrite({ status, endedAt }: Pick<TaskView, "status" | "endedAt">): boolean {
  return endedAt === null && status !== "waiting" && status !== "paused";
}

/**
 * Whether a run waits for this person, even while some of its agents work. Questions that the person has closed or
 * snoozed are ignored.
 */
export function waitsForPerson({ runId, status, waitsFor }: ListedRun, asking: Asking): boolean {
  if (status !== "waiting" && status !== "running") return false;
  return asking.runs.has(runId) || (waitsFor.includes("person") && !asking.setAside.has(runId));
}

/** The look of a run in a list. */
export function lookOfRun(run: ListedRun, asking: Asking): Look {
  if (waitsForPerson(run, asking)) return "waits";
  return run.status === "waiting" ? "suspended" : lookOf(run.status);
}

/** Describes the status of a run, or how it ended. */
export function viewWord({
  status,
  questions,
  failure,
}: Pick<RunFactsView, "status" | "questions" | "failure">): string {
  return hasQuestion(status, questions) ? causeWords.person : endWord(status, failure);
}

/** Describes how a run ended. If its error names a limit, the text names this limit. */
export function endWord(status: RunStatus, failure: Failure | null): string {
  return endWordAt(status, failure === null ? null : limitOf(failure));
}

/** The status of a run in a list, in words. */
export function runWord(run: ListedRun, asking: Asking): string {
  const { status, waitsFor } = run;
  const [first] = waitsFor;
  if (waitsForPerson(run, asking)) return causeWords.person;
  if (first === "person") return "Waits for an answer";
  if (first === "host" && run.host !== undefined) return `Waits for machine ${run.host}`;
  // A pending run may wait for its turn or its time.
  return first !== undefined && (status === "waiting" || status === "pending" || first === "crash_loop")
    ? causeWords[first]
    : words[status];
}

export function hasEnded(status: RunStatus): boolean {
  return status !== "pending" && status !== "running" && status !== "waiting" && status !== "paused";
}
