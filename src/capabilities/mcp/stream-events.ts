import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";

interface StoredMessage {
  readonly stream: string;
  readonly message: JSONRPCMessage;
  /** Length of the message as JSON. */
  readonly size: number;
}

/**
 * Keeps the latest messages of one session's streams, for a host that reconnects after its connection broke. Number and
 * size of the messages are limited, so that a host cannot fill the memory with large results.
 */
export class StreamEvents implements EventStore {
  readonly #limit: number;
  readonly #maxSize: number;
  readonly #kept = new Map<string, StoredMessage>();
  #next = 0;
  #size = 0;

  constructor(limit = 1_000, maxSize = 4 * 1024 * 1024) {
    this.#limit = limit;
    this.#maxSize = maxSize;
  }

  /** Stores a message and returns its event id. */
  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    const id = `${this.#next++}`;
    const size = JSON.stringify(message).length;
    this.#kept.set(id, { stream, message, size });
    this.#size += size;
    for (const [oldest, { size: freed }] of this.#kept) {
      if (this.#kept.size <= this.#limit && this.#size <= this.#maxSize) break;
      this.#kept.delete(oldest);
      this.#size -= freed;
    }
    return id;
  }

  /** Returns the stream of an event, if the event is still kept. */
  async getStreamIdForEventId(id: string): Promise<string | undefined> {
    return this.#kept.get(id)?.stream;
  }

  /** Sends the kept messages of the same stream that follow an event, and returns the stream. */
  async replayEventsAfter(
    last: string,
    { send }: { readonly send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const stream = this.#kept.get(last)?.stream ?? "";
    for (const [id, kept] of this.#kept) {
      const isMessage = Object.keys(kept.message).length > 0;
      if (kept.stream === stream && Number(id) > Number(last) && isMessage) await send(id, kept.message);
    }
    return stream;
  }
}
