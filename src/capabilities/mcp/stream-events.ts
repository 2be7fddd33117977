import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";

interface StoredMessage {
  readonly stream: string;
  readonly message: JSONRPCMessage;
}

/** Keeps the latest messages of one session's streams, for a host that reconnects after its connection broke. */
export class StreamEvents implements EventStore {
  readonly #limit: number;
  readonly #kept = new Map<string, StoredMessage>();
  #next = 0;

  constructor(limit = 1_000) {
    this.#limit = limit;
  }

  /** Stores a message and returns its event id. */
  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    const id = `${this.#next++}`;
    this.#kept.set(id, { stream, message });
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > this.#limit && oldest !== undefined) this.#kept.delete(oldest);
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
