import { Transcript, type CompactionStrategy, type RunContext } from "../../kernel/index.ts";
import { estimateTokens } from "./message-size.ts";
import { summarizeIn, type Summarizer } from "./summarizer.ts";

export interface WindowChange {
  readonly messagesBefore: number;
  readonly messagesAfter: number;
}

export interface PromptWindowOptions {
  /** Whose turns it is for; what is compacted is a step of it. */
  readonly ctx: RunContext;
  readonly strategy: (summarize: Summarizer) => CompactionStrategy;
  /** Of the agent's models, the one that writes summaries. */
  readonly role: string;
  readonly onCompact?: (change: WindowChange) => void;
}

/**
 * What the model is shown of a conversation that grows. What was left out stays out, so that a summary is paid for once; the
 * conversation itself is whole, and that is what is stored (S3). J4: compacting is a step, taken where the strategy says that it is due; a
 * replay is shown what was recorded.
 */
export class PromptWindow {
  readonly #options: PromptWindowOptions;
  readonly #strategy: CompactionStrategy;
  /** Where summaries are asked for: inside the step that compacts. */
  #scope: RunContext;
  #shown = Transcript.empty;
  #seen = 0;

  constructor(options: PromptWindowOptions) {
    const { ctx, strategy, role } = options;
    this.#options = options;
    this.#scope = ctx;
    this.#strategy = strategy((requests) => summarizeIn(this.#scope, { role })(requests));
  }

  /** `conversation` goes on from the one before. Costs what is shown, not what was said. */
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
    // J4: compaction starts a new chain; without it the chain goes on, and hashing costs what is new.
    if (transcript !== shown) {
      this.#shown = transcript;
      onCompact?.({ messagesBefore: shown.length, messagesAfter: transcript.length });
    }
    return this.#shown;
  }
}
