import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";

interface Kept {
  readonly stream: string;
  readonly message: JSONRPCMessage;
}

/** What was sent on the streams of one session, for a host that comes back after its connection broke: the last of it, bounded. */
export class StreamEvents implements EventStore {
  readonly #limit: number;
  readonly #kept = new Map<string, Kept>();
  #next = 0;

  constructor(limit = 1_000) {
    this.#limit = limit;
  }

  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    const id = `${this.#next++}`;
    this.#kept.set(id, { stream, message });
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > this.#limit && oldest !== undefined) this.#kept.delete(oldest);
    return id;
  }

  async getStreamIdForEventId(id: string): Promise<string | undefined> {
    return this.#kept.get(id)?.stream;
  }

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
