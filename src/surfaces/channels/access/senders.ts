import { Fault } from "../../../kernel/index.ts";
import type { IncomingMessage } from "../channel.ts";
import type { Owner } from "./owner.ts";
import type { Pairings } from "./pairings.ts";

/** Settings of `Senders`. */
export interface SenderSettings {
  readonly channel: string;
  readonly allowed: ReadonlyMap<string, Owner>;
  /** Whether unknown senders may ask to be admitted. */
  readonly canPair: boolean;
  readonly pairings: Pairings;
  readonly log: (line: string) => void;
  readonly now: () => number;
}

/** Number of senders whose last dropped message is remembered, so that very many messages do not fill the log. */
const maxRemembered = 1_000;
const hourMs = 3_600_000;

/** N3: decides who may use a channel. */
export class Senders {
  readonly #settings: SenderSettings;
  readonly #logged = new Map<string, number>();

  constructor(settings: SenderSettings) {
    this.#settings = settings;
  }

  /** The owner of a sender's runs. `undefined` if the sender may not use the channel. */
  async ownerOf(senderId: string): Promise<Owner | undefined> {
    const { allowed, pairings, channel } = this.#settings;
    const own = allowed.get(senderId);
    if (own !== undefined) return own;
    const pairing = await pairings.find(channel, senderId);
    return pairing && { userId: pairing.userId, tenantId: pairing.tenantId };
  }

  /**
   * Returns the text for an unknown sender, with a new pairing code. `undefined` if the message is dropped, because
   * it was sent in a group, the channel has no pairing, or there were too many requests. Dropped messages of a
   * sender cause one log line per hour.
   */
  async refuse({ senderId, senderName, isPrivate = true }: IncomingMessage): Promise<string | undefined> {
    const { channel, canPair, pairings } = this.#settings;
    if (!canPair || !isPrivate) return this.#drop(senderId, "the sender is not in the allow list");
    try {
      const { code } = await pairings.request({ channel, senderId, senderName });
      return `I do not know you yet. Ask the owner of this server to run:\n\nreeve pair approve ${code}\n\nThe code is valid for one hour. Then write to me again.`;
    } catch (error) {
      if (!Fault.is(error) || error.code !== "rate_limited") throw error;
      return this.#drop(senderId, error.message);
    }
  }

  #drop(senderId: string, reason: string): undefined {
    const { channel, log, now } = this.#settings;
    const last = this.#logged.get(senderId);
    if (last !== undefined && now() - last < hourMs) return;
    this.#logged.delete(senderId);
    this.#logged.set(senderId, now());
    const [oldest] = this.#logged.keys();
    if (this.#logged.size > maxRemembered && oldest !== undefined) this.#logged.delete(oldest);
    log(`channel ${channel}: dropped a message of sender ${JSON.stringify(senderId)}: ${reason}`);
  }
}
