import {
  type ChatMessage,
  type RunContext,
  type SessionChange,
  type Turn,
  type TurnEvent,
  eventDraft,
  jsonText,
  reportsNothing,
} from "../../kernel/index.ts";
import type { AgentRunResult } from "../interception/middleware/agent-run.ts";
import { scheduleReviews } from "../team/reviewers/review-schedule.ts";
import type { Reviewer } from "../team/reviewers/reviewer.ts";
import { refusedEntries, sessionEntries } from "./session-entries.ts";

/** The end of an invocation. */
export interface Closing extends AgentRunResult {
  /** The messages that the invocation adds to its session. `null` if its input was refused, which leaves no entry. */
  readonly messages: readonly ChatMessage[] | null;
  /** Whether an error stopped the invocation, so that the run can be resumed. */
  readonly isStopped: boolean;
  readonly reviewers: readonly Reviewer[];
}

/** The index of an invocation within its task, counted from 0, with the session changes of earlier invocations. */
export interface Place {
  readonly number: number;
  /** Whether another invocation of the task follows, so that the session has not settled. Default: `false`. */
  readonly isFollowed?: boolean;
  readonly kept: SessionChange[];
}

/** Whether the invocation is a heartbeat that reports nothing. It leaves no entry in the session. */
export function isSilent({ heartbeat }: RunContext, { status, output }: AgentRunResult): boolean {
  return heartbeat && status === "completed" && reportsNothing(output);
}

/** Ends an invocation. The commit that ends the task makes its entries visible together with `agent_end`. */
export function closeInvocation(ctx: RunContext, turn: Turn, place: Place, closing: Closing): void {
  const { messages, isStopped } = closing;
  const { changes, leafId } =
    messages === null
      ? refusedEntries(ctx, turn, place.number)
      : sessionEntries(ctx, turn, { messages, place: place.number, isStopped });
  for (const change of changes) place.kept.push(change);
  const ended = { turn, place: place.number, messages: messages ?? [], leafId, isStopped };
  const reviews = scheduleReviews(closing.reviewers, ctx, ended);
  if (reviews !== undefined) place.kept.push(reviews.change);
  ctx.report({ sessions: place.kept, ...(reviews && { next: reviews.next }) });
  const last = reviews === undefined ? leafId : reviews.change.entry.id;
  for (const draft of closingEvents(ctx, closing, last)) ctx.emitEvent(draft, turn);
  // The runtime drops this event if a compaction or unread input follows the end of the task.
  if (place.isFollowed !== true)
    ctx.emitEvent(eventDraft("settled", { sessionId: ctx.facts.sessionId }), turn);
}

/**
 * Returns the closing events. E1: turns and usage are those that the runtime has counted, as in the result, and not
 * those of the architecture.
 */
function closingEvents(
  { facts: { sessionId }, snapshot: { ledger }, taskId, usage }: RunContext,
  { status, interruptionReason, output }: AgentRunResult,
  leafId: string | null,
): readonly TurnEvent[] {
  const { turns } = ledger.accounts[taskId]?.spent ?? { turns: 0 };
  return [
    eventDraft("agent_end", { status, output: jsonText(output), turns, usage, interruptionReason }),
    eventDraft("save_point", { sessionId, leafId }),
  ];
}
