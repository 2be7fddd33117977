import type {
  ApprovalRequest,
  CancelSignal,
  Delta,
  Event,
  EventType,
  RunHandle,
} from "../../../kernel/index.ts";
import { AnswerFold } from "./answer-fold.ts";
import type { AnswerPart, WaitingQuestion } from "./answer-part.ts";

/** Options of `followAnswer`. */
export interface FollowAnswerOptions {
  /**
   * Sequence number (`seq`) of the first event whose parts are yielded. Earlier events are read but yield nothing.
   * Default: 0.
   */
  readonly fromSeq?: number;
  /** Whether parts of sub-agents are yielded. Default: `false`. */
  readonly subAgents?: boolean;
  /**
   * What happens when the run cannot continue without a person. `end`: the stream ends with the part `waiting`, and
   * the run waits. `wait`: the stream continues when the person has answered. Default: `end`.
   */
  readonly onPerson?: "end" | "wait";
  /**
   * Whether the stream ends when the run waits for these questions. A caller that is just sending answers to some of
   * them returns `false`. Only with `onPerson: "end"`. If absent, the stream ends.
   */
  readonly endsWith?: (questions: readonly WaitingQuestion[]) => boolean;
  /**
   * Sequence number (`seq`) of the first event after which the run may be reported as waiting. A caller that has
   * just answered a question sets it, because the run still waits until its owner has read the answer. Default: 0.
   */
  readonly waitsFromSeq?: number;
  /** Ends the stream when it aborts. The run continues (C3). */
  readonly signal?: CancelSignal;
}

/** Events after which a run may only wait. */
const turningPoints: ReadonlySet<EventType> = new Set([
  "approval_request",
  "task_suspend",
  "seat_pause",
  "task_end",
]);

/**
 * Yields the parts that a client shows of a run, until the run ends or waits for a person. It works in any process
 * and at any time. C3: leaving the loop does not affect the run. Costs O(events of the run).
 */
export function followAnswer(
  run: RunHandle,
  { signal, ...options }: FollowAnswerOptions = {},
): AsyncGenerator<AnswerPart, void, undefined> {
  return answerParts(run, run.events(signal === undefined ? {} : { signal }), options);
}

/** Yields the parts like `followAnswer`, from events of the run that are read from the first one on. */
export async function* answerParts(
  run: RunHandle,
  items: AsyncIterable<Event | Delta>,
  options: Omit<FollowAnswerOptions, "signal"> = {},
): AsyncGenerator<AnswerPart, void, undefined> {
  const { fromSeq = 0, waitsFromSeq = 0, subAgents = false, onPerson = "end", endsWith } = options;
  const fold = new AnswerFold({ subAgents });
  let next = 0;
  let end: Event<"run_end"> | undefined;
  for await (const item of items) {
    if ("seq" in item) next = item.seq + 1;
    if ("seq" in item && item.seq === fromSeq) fold.startText();
    const parts = fold.read(item);
    // The end of a run that was resumed is not its last one.
    if (item.type !== "usage_corrected") end = item.type === "run_end" ? item : undefined;
    if (next > fromSeq || !("seq" in item)) yield* parts;
    const mayWait = onPerson === "end" && next > waitsFromSeq && isTurningPoint(item);
    if (!mayWait || !fold.hasOpenQuestions || endsWith?.(fold.openQuestions) === false) continue;
    if (!(await isWaiting(run, fold.openQuestions))) continue;
    yield { type: "waiting", questions: fold.openQuestions };
    return;
  }
  if (end !== undefined) yield fold.end(end);
}

function isTurningPoint(item: Event | Delta): boolean {
  return "seq" in item && turningPoints.has(item.type);
}

/** Whether the run only waits, and waits exactly for the questions that a reader has seen. */
async function isWaiting(run: RunHandle, seen: readonly ApprovalRequest[]): Promise<boolean> {
  const { status, waitsFor } = await run.summary();
  if (status !== "waiting" || !waitsFor.includes("person")) return false;
  const pending = await run.pendingApprovals();
  const ids = new Set(pending.map(({ approvalId }) => approvalId));
  return ids.size === seen.length && seen.every(({ approvalId }) => ids.has(approvalId));
}
