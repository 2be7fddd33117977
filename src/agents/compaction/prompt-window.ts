import { Transcript, type CompactionStrategy, type RunContext, estimateTokens } from "../../kernel/index.ts";
import { summarizeIn, type Summarizer } from "./summarizer.ts";

export interface WindowChange {
  readonly messagesBefore: number;
  readonly messagesAfter: number;
}

export interface PromptWindowOptions {
  /** The context of the task; compaction is a step of it. */
  readonly ctx: RunContext;
  readonly strategy: (summarize: Summarizer) => CompactionStrategy;
  /** The role of the model that writes summaries. */
  readonly role: string;
  readonly onCompact?: (change: WindowChange) => void;
}

/**
 * The part of a growing conversation that the model sees. Omitted messages stay omitted, so a summary is paid once. The
 * stored conversation is complete (S3). J4: compaction is a step that runs when the strategy is due; a replay uses the
 * record.
 */
export class PromptWindow {
  readonly #options: PromptWindowOptions;
  readonly #strategy: CompactionStrategy;
  /** The scope in which summaries are requested: inside the compaction step. */
  #scope: RunContext;
  #shown = Transcript.empty;
  #seen = 0;

  constructor(options: PromptWindowOptions) {
    const { ctx, strategy, role } = options;
    this.#options = options;
    this.#scope = ctx;
    this.#strategy = strategy((requests) => summarizeIn(this.#scope, { role })(requests));
  }

  /**
   * The window of a conversation that continues the previous one. It costs time proportional to what is shown, not to
   * the whole conversation.
   */
  async of(conversation: Transcript): Promise<Transcript> {
    this.#shown = this.#shown.append(...conversation.slice(this.#seen));
    this.#seen = conversation.length;
    const shown = this.#shown;
    const messages = shown.slice();
    if (this.#strategy.isDue?.(messages) === false) return shown;
    const { ctx, onCompact } = this.#options;
    const { transcript } = await ctx.compact({
      transcript: shown,
      contextTokens: estimateTokens(messages),
      compact: (all, inside) => {
        this.#scope = inside;
        return this.#strategy.compact(all);
      },
    });
    // J4: compaction starts a new digest chain. Otherwise the chain continues, and hashing costs only what is new.
    if (transcript !== shown) {
      this.#shown = transcript;
      onCompact?.({ messagesBefore: shown.length, messagesAfter: transcript.length });
    }
    return this.#shown;
  }
}
