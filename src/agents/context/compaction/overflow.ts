import { estimateTokens, Fault, type RunContext, type Transcript } from "../../../kernel/index.ts";
import type { CompactionPlan, StrategyFactory } from "./compaction-plan.ts";
import { summarization } from "./summarization.ts";
import { summarizeIn } from "./summarizer.ts";

/** Whether a model call failed because its request exceeds the model's context window. */
export function isOverflow(error: unknown): boolean {
  return Fault.is(error) && error.code === "model_context_overflow";
}

/** The options for shortening a transcript that exceeded the context window. */
export interface OverflowOptions {
  readonly ctx: RunContext;
  readonly plan: Pick<CompactionPlan, "strategy" | "keepRecentTokens">;
  /** The role of the model that writes summaries. */
  readonly role: string;
}

/**
 * Shortens a transcript in one `compaction` step. It uses the agent's strategy. If there is none, or if it removes
 * nothing, it uses the compaction of the session. Returns `null` if nothing can be removed.
 */
export async function shortenTranscript(
  { ctx, plan: { strategy, keepRecentTokens }, role }: OverflowOptions,
  transcript: Transcript,
): Promise<Transcript | null> {
  const tokens = estimateTokens(transcript.slice());
  const ofSession: StrategyFactory = (summarize) => summarization({ summarize, keepRecentTokens });
  const factories = strategy === null ? [ofSession] : [strategy, ofSession];
  const goal = { maxTokens: Math.max(1, tokens - 1) };
  const { transcript: shorter } = await ctx.compact({
    transcript,
    contextTokens: tokens,
    compact: async (messages, inside) => {
      for (const create of factories) {
        const shown = await create(summarizeIn(inside, { role })).compact(messages, goal);
        if (shown !== messages && estimateTokens(shown) < tokens) return shown;
      }
      return messages;
    },
  });
  return shorter === transcript ? null : shorter;
}
