import type { TaskView, RunFactsView } from "../../src/surfaces/view/run-view.ts";
import type { Run } from "../api/types.ts";

/** What a status looks like: each has its own glyph, and colour comes second. */
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

/** The look of a status of a task or a run. `questions`: how many questions wait for a person. */
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

/** The look of a task. An agent that waits for its reports is alive. */
export function lookOfTask({ status, questions, waitsFor }: TaskView): Look {
  const isForReports = status === "waiting" && waitsFor.some((name) => name.startsWith("join "));
  return isForReports && questions === 0 ? "running" : lookOf(status, questions);
}

/** The look of a run in a list. */
export function lookOfRun({ status, waitsFor }: Pick<Run, "status" | "waitsFor">): Look {
  if (status === "waiting") return waitsFor.includes("person") ? "waits" : "suspended";
  return lookOf(status);
}

const words: Readonly<Record<RunStatus | TaskStatus, string>> = {
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

export function statusWord(status: RunStatus | TaskStatus, questions = 0): string {
  return questions > 0 && (status === "waiting" || status === "running") ? "Waits for you" : words[status];
}

const causes: Readonly<Record<Run["waitsFor"][number], string>> = {
  person: "Waits for you",
  signal: "Waits for a signal",
  time: "Sleeps",
  message: "Waits for a reply",
  seat: "Waits for a seat",
  budget: "Waits for money",
  worker: "Waits for a worker",
  compaction: "Waits for a summary",
};

/** The status of a run in a list, in words. */
export function runWord({ status, waitsFor }: Pick<Run, "status" | "waitsFor">): string {
  const [first] = waitsFor;
  if (status === "waiting" && first !== undefined)
    return causes[waitsFor.includes("person") ? "person" : first];
  return words[status];
}

export function hasEnded(status: RunStatus): boolean {
  return status !== "pending" && status !== "running" && status !== "waiting" && status !== "paused";
}
