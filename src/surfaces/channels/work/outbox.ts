import { Fault, type JsonObject } from "../../../kernel/index.ts";
import type { OutgoingMessage } from "../channel.ts";
import { allRecords, namespaces, remove } from "../channel-records.ts";
import { shortDigest } from "../../http/short-digest.ts";
import type { ChannelParts } from "./parts.ts";
import type { SendQueue } from "./send-queue.ts";

/** A message that is not an answer, before it is cut into pieces. */
export type Posted = Omit<OutgoingMessage, "piece" | "pieces">;

interface StoredPost {
  readonly message: Posted;
  readonly postedAt: number;
  readonly sent: number;
}

/** N5: stored messages that are not answers. Each stays until the platform has accepted all its pieces. */
export class Outbox {
  readonly #parts: ChannelParts;
  readonly #queue: SendQueue;
  readonly #known = new Set<string>();

  constructor(parts: ChannelParts, queue: SendQueue) {
    this.#parts = parts;
    this.#queue = queue;
  }

  /** Stores a message. If a message with the same `deliveryId` is already stored, that one stays. */
  static async store({ records, channel, clock }: ChannelParts, message: Posted): Promise<void> {
    const key = `${channel.name}/${shortDigest(message.deliveryId)}`;
    const value = { message, postedAt: clock.now(), sent: 0 } satisfies StoredPost as unknown as JsonObject;
    await records.put({ namespace: namespaces.outbox, key, value }, "absent");
  }

  /** Queues all stored messages that are not queued yet. */
  async load(): Promise<void> {
    const { records, channel } = this.#parts;
    const found = await allRecords(records, namespaces.outbox, `${channel.name}/`);
    const posts = found
      .filter(({ key }) => !this.#known.has(key))
      .map(({ key, value }) => ({ key, ...(value as unknown as StoredPost) }))
      .toSorted((one, other) => one.postedAt - other.postedAt);
    for (const post of posts) {
      this.#known.add(post.key);
      void this.#queue
        .enqueue(post.message.conversationId, () => this.#deliver(post.key, post))
        .finally(() => this.#known.delete(post.key));
    }
  }

  async #deliver(key: string, { message, postedAt, sent }: StoredPost): Promise<void> {
    const { records, channel } = this.#parts;
    const texts = channel.pieces?.(message.text) ?? [message.text];
    for (const [index, text] of texts.entries()) {
      if (index < sent) continue;
      const piece = { ...message, text, piece: index + 1, pieces: texts.length };
      const outcome = await this.#queue.send(piece, postedAt);
      if (outcome === undefined) return;
      if (outcome.kind === "failed") break;
      if (index + 1 === texts.length) break;
      const current = await records.get({ namespace: namespaces.outbox, key });
      if (current === undefined) throw new Fault("lease_lost", "another process has sent the message");
      const value = { message, postedAt, sent: index + 1 } satisfies StoredPost as unknown as JsonObject;
      await records.put({ namespace: namespaces.outbox, key, value }, current.version);
    }
    await remove(records, { namespace: namespaces.outbox, key });
  }
}
