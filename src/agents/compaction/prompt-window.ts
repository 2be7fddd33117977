import { Transcript, type CompactionStrategy } from "../../kernel/index.ts";

export interface WindowChange {
  readonly messagesBefore: number;
  readonly messagesAfter: number;
}

/**
 * What the model is shown of a conversation that grows. What was left out stays out, so that a summary is paid for once; the
 * conversation itself is whole, and that is what is stored (S3). A replay that asks in the same order is shown the same (J4).
 */
export class PromptWindow {
  readonly #strategy: CompactionStrategy;
  readonly #onCompact: (change: WindowChange) => void;
  #shown = Transcript.empty;
  #seen = 0;

  constructor(strategy: CompactionStrategy, onCompact: (change: WindowChange) => void = () => undefined) {
    this.#strategy = strategy;
    this.#onCompact = onCompact;
  }

  /** `conversation` goes on from the one before. Costs what is shown, not what was said. */
  async of(conversation: Transcript): Promise<Transcript> {
    this.#shown = this.#shown.append(...conversation.slice(this.#seen));
    this.#seen = conversation.length;
    const messages = this.#shown.slice();
    const window = await this.#strategy.compact(messages);
    // J4: compaction starts a new chain; without it the chain goes on, and hashing costs what is new.
    if (window !== messages) {
      this.#shown = Transcript.of(window);
      this.#onCompact({ messagesBefore: messages.length, messagesAfter: window.length });
    }
    return this.#shown;
  }
}
