import {
  canonicalJson,
  describeExhaustion,
  topUpQuestion,
  type ApprovalDecision,
  type Exhaustion,
  type Hash,
  type JsonValue,
  type TaskId,
} from "../../kernel/index.ts";
import type { RunLog } from "../journal/run-log.ts";
import type { RunState } from "../journal/run-state.ts";
import { topUpQuestionId } from "../journal/wait-names.ts";
import type { RunHeadcount } from "./run-headcount.ts";

export interface TopUpQuestionsOptions {
  readonly hash: Hash;
  readonly log: RunLog;
  readonly state: RunState;
  readonly seats: RunHeadcount;
}

/**
 * B5: the questions of the tasks of one run that wait for a top-up. One commit contains the question and the pause
 * of the task, and one commit contains the answer and the end of the pause, so that a crash leaves both or neither.
 */
export class TopUpQuestions {
  readonly #hash: Hash;
  readonly #log: RunLog;
  readonly #state: RunState;
  readonly #seats: RunHeadcount;

  constructor({ hash, log, state, seats }: TopUpQuestionsOptions) {
    this.#hash = hash;
    this.#log = log;
    this.#state = state;
    this.#seats = seats;
  }

  /** Asks a question. It asks once per task: other code of the task that would ask waits for the same answer. */
  ask(taskId: TaskId, exhaustion: Exhaustion): void {
    const { topUpQuestion: asked, topUpsAsked } = this.#state.task(taskId);
    if (asked === undefined) {
      const input = { ...topUpQuestion(exhaustion) } satisfies JsonValue;
      const data = {
        approvalId: topUpQuestionId(taskId, topUpsAsked),
        kind: "top_up",
        toolName: "top_up",
        callId: "",
        input,
        inputDigest: this.#hash(canonicalJson(input)),
        reason: describeExhaustion(exhaustion),
      } as const;
      this.#log.emit(taskId, { type: "approval_request", data });
    }
    this.#seats.apply({ type: "hold", taskId, heldFor: exhaustion.taskId });
  }

  /**
   * Returns the task whose budget the question with this id would raise. `undefined` if it is not an open question
   * for a top-up.
   */
  accountOf(taskId: TaskId, approvalId: string): TaskId | undefined {
    if (this.#state.tasks.get(taskId)?.topUpQuestion !== approvalId) return undefined;
    return this.#state.headcount.tasks[taskId]?.heldFor;
  }

  /** H5: lets the tasks that wait for the budget of `account` take seats again. */
  raised(account: TaskId, by: string): void {
    for (const { taskId, heldFor } of Object.values(this.#state.headcount.tasks))
      if (heldFor === account) this.answer(taskId, { decision: "approved", by });
  }

  /** Ends the wait of a task. Does nothing for a task that does not wait for a larger budget. */
  answer(taskId: TaskId, decision: ApprovalDecision): void {
    const approvalId = this.#state.tasks.get(taskId)?.topUpQuestion;
    if (approvalId !== undefined)
      this.#log.emit(taskId, { type: "approval_decision", data: { approvalId, decision } });
    if (this.#state.headcount.tasks[taskId]?.heldFor !== undefined)
      this.#seats.apply({ type: "unhold", taskId });
  }
}
