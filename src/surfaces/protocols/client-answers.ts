import { AnswerFold, type AnswerFoldOptions } from "../../agents/index.ts";
import {
  Fault,
  type ApprovalDecision,
  type ApprovalRequest,
  type JsonValue,
  type RunHandle,
} from "../../kernel/index.ts";

/** A question of a run, as clients see it. */
export interface AskedQuestion {
  /**
   * The question id that the client received. It contains the run, so that an answer to another run does not match
   * it.
   */
  readonly questionId: string;
  /** The id of the tool call that the client received. If the client received no such call, it is the `questionId`. */
  readonly callId: string;
  readonly request: ApprovalRequest;
  /** Seq of the event that asked. */
  readonly seq: number;
}

/** The questions of a run and their answers. */
export interface AskedQuestions {
  readonly all: readonly AskedQuestion[];
  /** The questions without an answer. */
  readonly open: readonly AskedQuestion[];
  /** Sequence numbers of the events with answers, in their order. */
  readonly answeredAt: readonly number[];
  /** The answers, by the id of the question. */
  readonly decisions: ReadonlyMap<string, ApprovalDecision>;
  /** Seq of the next event of the run. */
  readonly next: number;
}

/** The answer of a client to a question. */
export type ClientAnswer =
  | { readonly type: "decision"; readonly decision: ApprovalDecision }
  | { readonly type: "result"; readonly value: JsonValue; readonly isError: boolean };

/**
 * Reads the questions of a run. `options` must be the options with which its answer is followed. Takes O(events of
 * the run).
 */
export async function readQuestions(
  run: RunHandle,
  options: AnswerFoldOptions = {},
): Promise<AskedQuestions> {
  const fold = new AnswerFold(options);
  const all: AskedQuestion[] = [];
  const answeredAt: number[] = [];
  const decisions = new Map<string, ApprovalDecision>();
  let next = 0;
  for await (const event of run.events({ follow: false })) {
    if (!("seq" in event)) continue;
    next = event.seq + 1;
    for (const part of fold.read(event)) {
      if (part.type === "decision") {
        answeredAt.push(event.seq);
        decisions.set(part.questionId, part.decision);
      }
      if (part.type !== "question") continue;
      const { questionId, request } = part;
      all.push({ questionId, callId: part.callId ?? questionId, request, seq: event.seq });
    }
  }
  const openIds = new Set(fold.openQuestions.map(({ questionId }) => questionId));
  return { all, open: all.filter(({ questionId }) => openIds.has(questionId)), answeredAt, decisions, next };
}

/**
 * Sends the answers of a client to the open questions of a run. All other data of the client about calls and
 * questions is ignored. Only the first answer to a question is used; a later one has no effect. Returns the number
 * of questions that the client has answered.
 */
export async function answerQuestions(
  run: RunHandle,
  { open }: AskedQuestions,
  answerOf: (question: AskedQuestion) => ClientAnswer | undefined,
): Promise<number> {
  let count = 0;
  for (const question of open) {
    const answer = answerOf(question);
    if (answer === undefined) continue;
    count++;
    await sendAnswer(run, question, answer);
  }
  return count;
}

async function sendAnswer(
  run: RunHandle,
  { request: { approvalId } }: AskedQuestion,
  answer: ClientAnswer,
): Promise<void> {
  try {
    if (answer.type === "decision") await run.approve(approvalId, answer.decision);
    else await run.toolResult(approvalId, answer.value, { isError: answer.isError });
  } catch (error) {
    if (!Fault.is(error) || (error.code !== "already_exists" && error.code !== "not_found")) throw error;
  }
}

/**
 * Returns the sequence number of the first event that a client has not received. The client's last answer ended
 * when the run began to wait for these questions, so this is the event of the first answer after they were asked.
 */
export function seenUntil(
  { all, answeredAt, next }: AskedQuestions,
  isSeen: (question: AskedQuestion) => boolean,
): number {
  const last = all.findLast(isSeen);
  if (last === undefined) return 0;
  return answeredAt.find((seq) => seq > last.seq) ?? next;
}
