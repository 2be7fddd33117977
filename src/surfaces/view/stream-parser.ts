import { nameAgents } from "./agent-names.ts";

/** One server-sent event. */
export interface StreamMessage {
  /** Name of the message. `message` unless the server sets another. */
  readonly name: string;
  readonly data: unknown;
}

/** Splits the text of a stream into messages. A message may arrive in several pieces. */
export class StreamParser {
  lastId: string | null;
  readonly #read: (data: unknown) => unknown;
  #rest = "";

  /** `read` converts the data of each message. Default: agent ids are replaced by the names that people know. */
  constructor(lastId: string | null = null, read: (data: unknown) => unknown = nameAgents) {
    this.lastId = lastId;
    this.#read = read;
  }

  /** The messages that a piece completes. */
  *messages(piece: string): Iterable<StreamMessage> {
    const text = this.#rest + piece;
    let start = 0;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n", start)) {
      yield* this.#messagesOf(text.slice(start, end));
      start = end + 2;
    }
    this.#rest = text.slice(start);
  }

  *#messagesOf(block: string): Iterable<StreamMessage> {
    let [name, data, id] = ["message", "", null as string | null];
    for (const line of block.split("\n")) {
      const at = line.indexOf(":");
      if (at <= 0) continue;
      const value = line.slice(line[at + 1] === " " ? at + 2 : at + 1);
      if (line.startsWith("data")) data += value;
      else if (line.startsWith("event")) name = value;
      else if (line.startsWith("id")) id = value;
    }
    if (data === "") return;
    yield { name, data: this.#read(JSON.parse(data)) };
    // After the message, so that a reader that failed gets it again.
    if (id !== null) this.lastId = id;
  }
}
