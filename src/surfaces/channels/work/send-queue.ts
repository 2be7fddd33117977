import { Fault } from "../../../kernel/index.ts";
import type { OutgoingMessage, SendOutcome } from "../channel.ts";
import type { ChannelParts } from "./parts.ts";
import { backoffMs, wait } from "./wait.ts";

/** Number of messages that a channel sends at the same time, each in a different conversation. */
const maxAtOnce = 8;
const dayMs = 86_400_000;
/** Longest time of one attempt to send a message. */
const attemptMs = 30_000;

/**
 * Sends the messages of a channel. The messages of one conversation are sent in order. Each message is sent again
 * until the platform has accepted it.
 */
export class SendQueue {
  readonly #parts: ChannelParts;
  readonly #signal: AbortSignal;
  readonly #tails = new Map<string, Promise<void>>();
  readonly #waiting: (() => void)[] = [];
  #sending = 0;
  /** Time until which nothing is sent, because the platform demanded a pause. */
  #pausedUntil = 0;

  constructor(parts: ChannelParts, signal: AbortSignal) {
    this.#parts = parts;
    this.#signal = signal;
  }

  /** Runs a task after all earlier tasks of the conversation. A task that fails is logged and does not stop later ones. */
  enqueue(conversationId: string, task: () => Promise<void>): Promise<void> {
    const before = this.#tails.get(conversationId) ?? Promise.resolve();
    const tail = before.then(task).catch((error: unknown) => this.#report(error));
    this.#tails.set(conversationId, tail);
    return tail.finally(() => {
      if (this.#tails.get(conversationId) === tail) this.#tails.delete(conversationId);
    });
  }

  /** Resolves when no task is in progress. */
  async settled(): Promise<void> {
    while (this.#tails.size > 0) await Promise.allSettled(this.#tails.values());
  }

  /**
   * Sends a message until the platform accepts or refuses it for good, at most for a day after `since`. Resolves with
   * `undefined` if the host stops first.
   */
  async send(
    message: OutgoingMessage,
    since: number,
  ): Promise<Exclude<SendOutcome, { kind: "retry" }> | undefined> {
    const { clock, channel, log } = this.#parts;
    for (let failures = 0; !this.#signal.aborted; failures++) {
      const outcome = await this.#attempt(message);
      if (this.#signal.aborted && outcome.kind !== "sent") return undefined;
      if (outcome.kind !== "retry") {
        if (outcome.kind === "failed")
          log(`channel ${channel.name}: a message was not delivered: ${outcome.reason}`);
        return outcome;
      }
      const { reason, afterMs } = outcome;
      if (clock.now() - since > dayMs) {
        log(`channel ${channel.name}: a message was not delivered within a day: ${reason}`);
        return { kind: "failed", reason };
      }
      if (failures === 0) log(`channel ${channel.name}: a message is sent again later: ${reason}`);
      if (afterMs !== undefined) this.#pausedUntil = Math.max(this.#pausedUntil, clock.now() + afterMs);
      else await wait(clock, backoffMs(failures), this.#signal);
    }
    return undefined;
  }

  async #attempt(message: OutgoingMessage): Promise<SendOutcome> {
    const { clock, channel } = this.#parts;
    await this.#acquire();
    try {
      while (clock.now() < this.#pausedUntil && !this.#signal.aborted)
        await wait(clock, this.#pausedUntil - clock.now(), this.#signal);
      if (this.#signal.aborted) return { kind: "retry", reason: "the channel stops" };
      // Not aborted when the host stops: a message in flight may have been accepted, and would be sent twice.
      return await channel.send(message, AbortSignal.timeout(attemptMs));
    } catch (error) {
      return { kind: "retry", reason: Fault.from(error).message };
    } finally {
      this.#release();
    }
  }

  async #acquire(): Promise<void> {
    if (this.#sending < maxAtOnce) this.#sending++;
    else await new Promise<void>((resolve) => void this.#waiting.push(resolve));
  }

  #release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#sending--;
    else next();
  }

  #report(error: unknown): void {
    if (this.#signal.aborted) return;
    this.#parts.log(`channel ${this.#parts.channel.name}: ${Fault.from(error).message}`);
  }
}
