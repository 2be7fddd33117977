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
import { saidEntries } from "./said-entries.ts";

/** How an invocation came to its end. */
export interface Closing extends AgentRunResult {
  /** In the middle of things: calls may be open. */
  readonly isStopped?: boolean;
  readonly performed?: string | undefined;
}

/** S1: an invocation that was stopped is closed like one that came to its end. One that failed is not: it may be gone on with. */
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

/** Which of a task's invocations it is, from 0, and what those before it left to be kept. */
export interface Place {
  readonly number: number;
  readonly kept: SessionChange[];
}

/** Commits with the end of the task: what was said is visible with the events that say so. */
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
  const { changes, leafId } = saidEntries(ctx, turn, { messages, place: place.number }, stopped);
  for (const change of changes) place.kept.push(change);
  ctx.report({ sessions: place.kept });
  for (const draft of closingEvents(ctx, session, closing, leafId)) ctx.emitEvent(draft, turn);
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
    eventDraft("settled", { sessionId }),
  ];
}
