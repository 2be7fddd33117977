import {
  Transcript,
  type CompactionStrategy,
  type RunContext,
  estimateTokens,
} from "../../../kernel/index.ts";
import type { CompactionPlan } from "./compaction-plan.ts";
import { shortenTranscript } from "./overflow.ts";
import { summarizeIn } from "./summarizer.ts";

export interface WindowChange {
  readonly messagesBefore: number;
  readonly messagesAfter: number;
}

export interface PromptWindowOptions {
  /** The run context of the task. A compaction is a step of this context. */
  readonly ctx: RunContext;
  readonly plan: Pick<CompactionPlan, "strategy" | "keepRecentTokens">;
  /** The role of the model that writes summaries. */
  readonly role: string;
  readonly onCompact?: (change: WindowChange) => void;
}

/**
 * The part of a growing conversation that the model sees. Messages that were left out once stay out, so that a
 * summary is paid only once. The stored conversation is complete (S3). J4: a compaction is a step that runs when
 * the strategy is due; a replay uses its record. Without a strategy, the window is shortened only after a request
 * was too long.
 */
export class PromptWindow {
  readonly #options: PromptWindowOptions;
  readonly #strategy: CompactionStrategy | undefined;
  /** The scope in which summaries are requested: inside the compaction step. */
  #scope: RunContext;
  #shown = Transcript.empty;
  #seen = 0;

  constructor(options: PromptWindowOptions) {
    const { ctx, plan, role } = options;
    this.#options = options;
    this.#scope = ctx;
    this.#strategy = plan.strategy?.((requests) => summarizeIn(this.#scope, { role })(requests));
  }

  /**
   * Returns the window of a conversation that continues the previous one. The cost is proportional to the length of
   * the window, not of the whole conversation.
   */
  async of(conversation: Transcript): Promise<Transcript> {
    const shown = this.#extend(conversation);
    const strategy = this.#strategy;
    if (strategy === undefined) return shown;
    const messages = shown.slice();
    if (strategy.isDue?.(messages) === false) return shown;
    const { transcript } = await this.#options.ctx.compact({
      transcript: shown,
      contextTokens: estimateTokens(messages),
      compact: (all, inside) => {
        this.#scope = inside;
        return strategy.compact(all);
      },
    });
    this.#replace(transcript);
    return this.#shown;
  }

  /**
   * Shortens the window of a conversation that exceeded the context window. Returns `null` if nothing can be
   * removed.
   */
  async shorten(conversation: Transcript): Promise<Transcript | null> {
    const shorter = await shortenTranscript(this.#options, this.#extend(conversation));
    if (shorter !== null) this.#replace(shorter);
    return shorter;
  }

  #extend(conversation: Transcript): Transcript {
    this.#shown = this.#shown.append(...conversation.slice(this.#seen));
    this.#seen = conversation.length;
    return this.#shown;
  }

  /**
   * Replaces the transcript of the window. J4: a compaction starts a new chain of digests. Otherwise the chain
   * continues, so that only new messages are hashed.
   */
  #replace(transcript: Transcript): void {
    const messagesBefore = this.#shown.length;
    if (transcript === this.#shown) return;
    this.#shown = transcript;
    this.#options.onCompact?.({ messagesBefore, messagesAfter: transcript.length });
  }
}
