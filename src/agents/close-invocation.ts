import {
  eventDraft,
  Fault,
  jsonText,
  performedBefore,
  type AgentSession,
  type RunContext,
  type SessionChange,
  type Turn,
  type TurnEvent,
} from "../kernel/index.ts";
import type { AgentRunResult } from "./middleware/agent-run.ts";
import { sessionEntries } from "./session-entries.ts";

/** The end of an invocation. */
export interface Closing extends AgentRunResult {
  /** Whether the invocation was stopped, so that calls may be unanswered. */
  readonly isStopped?: boolean;
  readonly performed?: string | undefined;
}

/**
 * S1: whether an error stops an invocation, which is then closed like a completed one. An invocation that failed is not
 * closed, because it can be resumed.
 */
export function stopOf(
  error: unknown,
): Pick<Closing, "status" | "interruptionReason" | "performed"> | undefined {
  const fault = Fault.from(error);
  const { code, message: interruptionReason, details } = fault;
  if (code === "cancelled") {
    const status = details?.["status"] === "deadline_exceeded" ? "deadline_exceeded" : "cancelled";
    return { status, interruptionReason };
  }
  return code === "budget_exhausted" || code === "guardrail_tripped"
    ? { status: code, interruptionReason, performed: performedBefore(fault) }
    : undefined;
}

/** The index of an invocation within its task, from 0, with the session changes that earlier invocations left. */
export interface Place {
  readonly number: number;
  /** Whether a further invocation of the task follows, so that the session does not settle. Default: `false`. */
  readonly isFollowed?: boolean;
  readonly kept: SessionChange[];
}

/**
 * Closes an invocation in the commit that ends the task, so that its entries become visible together with `agent_end`.
 */
export function closeInvocation(
  ctx: RunContext,
  session: AgentSession,
  turn: Turn,
  place: Place,
  closing: Closing,
): void {
  const { isStopped = false, interruptionReason, performed } = closing;
  const { settled } = session;
  const stopped = isStopped ? { reason: interruptionReason ?? "stopped", settled, performed } : undefined;
  const messages = session.messages.slice(turn.history.length);
  const { changes, leafId } = sessionEntries(ctx, turn, { messages, place: place.number }, stopped);
  for (const change of changes) place.kept.push(change);
  ctx.report({ sessions: place.kept });
  for (const draft of closingEvents(ctx, session, closing, leafId)) ctx.emitEvent(draft, turn);
  // The runtime drops this event if a compaction or unread input follows the end of the task.
  if (place.isFollowed !== true)
    ctx.emitEvent(eventDraft("settled", { sessionId: ctx.facts.sessionId }), turn);
}

function closingEvents(
  { facts: { sessionId } }: RunContext,
  { turns, cumulativeUsage: usage }: AgentSession,
  { status, interruptionReason, output }: AgentRunResult,
  leafId: string | null,
): readonly TurnEvent[] {
  return [
    eventDraft("agent_end", { status, output: jsonText(output), turns, usage, interruptionReason }),
    eventDraft("save_point", { sessionId, leafId }),
  ];
}
