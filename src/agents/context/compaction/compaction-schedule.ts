import {
  estimateTokens,
  eventDraft,
  HistoryRetention,
  rootTaskId,
  type AgentSession,
  type NextRun,
  type RunContext,
  type Turn,
  type TurnEvent,
} from "../../../kernel/index.ts";
import { limitsFor, type CompactionPlan } from "./compaction-plan.ts";

/** An invocation that is being closed. */
export interface ClosingInvocation {
  readonly ctx: RunContext;
  readonly session: AgentSession;
  readonly turn: Turn;
  readonly plan: CompactionPlan | null;
  /** What the summary must consider, as the caller of `invoke` requested it. */
  readonly instructions: string | undefined;
  /** Whether the application keeps the conversation in its own store. */
  readonly hasOwnHistory: boolean;
}

/** What follows an invocation: a compaction, or an event that says why there is none. */
export type CompactionDecision = { readonly next: NextRun } | { readonly event: TurnEvent } | undefined;

/**
 * Decides whether the session must be compacted after the invocation, because code requested it, or because the
 * next invocation would start with too many tokens. Only the conversation of a root whose history is kept is
 * compacted.
 */
export function decideCompaction(closing: ClosingInvocation): CompactionDecision {
  const { ctx, plan, turn, hasOwnHistory } = closing;
  const isKept = ctx.meta.supervision?.retention === HistoryRetention.PERMANENT;
  if (ctx.taskId !== rootTaskId || !isKept || hasOwnHistory || turn.sessionId === null) return undefined;
  const request = ctx.compactionRequest;
  if (plan === null) return request === null ? undefined : skipped(closing, "disabled");
  if (request !== null) return scheduled(closing, plan, request.instructions);
  const tokens = contextTokens(closing);
  if (turn.contextWindow !== null)
    return tokens > limitsFor(plan, turn.contextWindow).maxTokens ? scheduled(closing, plan) : undefined;
  // One event per session: the invocation in which the session outgrows what a compaction keeps.
  if (tokens <= plan.keepRecentTokens) return undefined;
  const isNew = estimateTokens(turn.history.slice()) <= plan.keepRecentTokens;
  return isNew ? skipped(closing, "unknown_window") : undefined;
}

/**
 * Returns the number of tokens with which the next invocation starts: those that the provider counted, and an
 * estimate for later messages.
 */
function contextTokens({ session }: ClosingInvocation): number {
  const { messages, reported, instructions } = session;
  if (reported !== null) return reported.tokens + estimateTokens(messages.slice(reported.messages));
  return estimateTokens([{ role: "system", content: instructions }, ...messages.slice()]);
}

function scheduled(
  { instructions: ofCaller }: ClosingInvocation,
  { budget }: CompactionPlan,
  ofRequest?: string,
): CompactionDecision {
  const instructions = [ofCaller, ofRequest].filter((text) => text !== undefined).join("\n\n");
  const input = instructions === "" ? {} : { instructions };
  return { next: { key: "compaction", kind: "compaction", input, budget } };
}

function skipped({ ctx }: ClosingInvocation, reason: "disabled" | "unknown_window"): CompactionDecision {
  return { event: eventDraft("compaction_skipped", { sessionId: ctx.facts.sessionId, reason }) };
}
