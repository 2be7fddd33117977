import type { Event } from "../../kernel/index.ts";
import type { QuestionView, RunView } from "./run-view.ts";

/** Returns the question for a request event, without an answer. */
export function newQuestion({ taskId, agentId, at, data }: Event<"approval_request">): QuestionView {
  return { request: data, taskId, agentId, askedAt: at, decision: null, decidedAt: null };
}

/**
 * Returns the time at which the task of a question ended without an answer. `null` if the question has an answer,
 * or may still get one.
 */
export function droppedAt(
  { decision, taskId }: QuestionView,
  { tasks }: Pick<RunView, "tasks">,
): number | null {
  return decision === null ? (tasks.get(taskId)?.endedAt ?? null) : null;
}

/** Whether a question waits for an answer. Questions of ended tasks do not wait. */
export function isUnanswered(question: QuestionView, view: Pick<RunView, "tasks">): boolean {
  return question.decision === null && droppedAt(question, view) === null;
}
