import { Fault } from "../../../kernel/index.ts";
import type { ChannelParts } from "./parts.ts";
import { wait } from "./wait.ts";

const intervalMs = 4_500;
/** A run that takes longer shows nothing further, because it may sleep for days. */
const longestMs = 600_000;

/** Shows in a conversation that an answer is in work. It is a courtesy: an error ends it and has no other effect. */
export class Typing {
  readonly #parts: ChannelParts;
  readonly #conversationId: string;
  readonly #signal: AbortSignal;
  #current: AbortController | undefined;

  constructor(parts: ChannelParts, conversationId: string, signal: AbortSignal) {
    this.#parts = parts;
    this.#conversationId = conversationId;
    this.#signal = signal;
  }

  start(): void {
    if (this.#current !== undefined || this.#parts.channel.showTyping === undefined) return;
    this.#current = new AbortController();
    void this.#show(AbortSignal.any([this.#current.signal, this.#signal]));
  }

  stop(): void {
    this.#current?.abort();
    this.#current = undefined;
  }

  async #show(signal: AbortSignal): Promise<void> {
    const { channel, clock, log } = this.#parts;
    const end = clock.now() + longestMs;
    try {
      while (!signal.aborted && clock.now() < end) {
        await channel.showTyping?.(this.#conversationId, signal);
        await wait(clock, intervalMs, signal);
      }
    } catch (error) {
      if (!signal.aborted) log(`channel ${channel.name}: ${Fault.from(error).message}`);
    }
  }
}
