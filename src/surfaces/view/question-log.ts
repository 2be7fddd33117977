import type { Event } from "../../kernel/index.ts";
import type { QuestionView, RunView } from "./run-view.ts";

/** The question of a request, without an answer. */
export function newQuestion({ taskId, agentId, at, data }: Event<"approval_request">): QuestionView {
  return { request: data, taskId, agentId, askedAt: at, decision: null, decidedAt: null };
}

/** Time at which the task of a question ended without an answer. `null` if it has an answer, or the task may still get one. */
export function droppedAt(
  { decision, taskId }: QuestionView,
  { tasks }: Pick<RunView, "tasks">,
): number | null {
  return decision === null ? (tasks.get(taskId)?.endedAt ?? null) : null;
}

/** Whether a question waits for an answer. An ended task waits for none. */
export function isUnanswered(question: QuestionView, view: Pick<RunView, "tasks">): boolean {
  return question.decision === null && droppedAt(question, view) === null;
}
