import type { Event, TaskId } from "../../kernel/index.ts";
import type { QuestionView } from "./run-view.ts";
import type { VersionedMap } from "./versioned-map.ts";

/** The question of a request, without an answer. */
export function newQuestion({ taskId, agentId, at, data }: Event<"approval_request">): QuestionView {
  const open = { decision: null, decidedAt: null, droppedAt: null };
  return { request: data, taskId, agentId, askedAt: at, ...open };
}

/** Whether a question waits for an answer. An ended task waits for none. */
export function isUnanswered({ decision, droppedAt }: QuestionView): boolean {
  return decision === null && droppedAt === null;
}

/** Says when a task ended without an answer to its questions, or `null` if it asks them again. Costs O(questions). */
export function dropQuestions(
  asked: VersionedMap<string, QuestionView>,
  taskId: TaskId,
  droppedAt: number | null,
): void {
  for (const question of asked)
    if (question.taskId === taskId && question.decision === null)
      asked.set(question.request.approvalId, { ...question, droppedAt });
}
