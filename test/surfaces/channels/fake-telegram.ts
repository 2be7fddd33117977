import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { JsonObject, JsonValue } from "../../../src/kernel/index.ts";

export const botToken = "123456:abcdefghijklmnopqrstuvwxyz012345";

interface Call {
  readonly method: string;
  readonly body: JsonObject;
}

/** A message as the channel sent it. */
interface SentMessage extends JsonObject {
  readonly chat_id: number;
  readonly text: string;
}

/** Answers a call instead of the API: a status with a body, or `undefined` for the usual answer. */
type Disturb = (call: Call) => { readonly status: number; readonly body: JsonObject } | "hang up" | undefined;

/** A Bot API on this machine: keeps updates until they are confirmed by an offset, and records all calls. */
export class FakeTelegram {
  readonly calls: Call[] = [];
  /** The accepted messages, by the calls of `sendMessage`. */
  readonly sent: SentMessage[] = [];
  readonly files = new Map<string, Buffer>();
  disturb: Disturb = () => undefined;
  /** Changes the order of the updates of one answer. */
  shuffle: (updates: readonly JsonObject[]) => readonly JsonObject[] = (updates) => updates;
  maxUpdates = 100;
  readonly #server: Server;
  readonly #updates: JsonObject[] = [];
  #nextUpdate = 1_000;
  #nextMessage = 5_000;
  readonly #watchers = new Set<() => void>();

  private constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<FakeTelegram> {
    const fake = new FakeTelegram();
    fake.#server.listen(0, "127.0.0.1");
    await once(fake.#server, "listening");
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
    this.#changed();
  }

  /** Adds an update and returns its number. */
  push(update: JsonObject, updateId = this.#nextUpdate++): number {
    this.#updates.push({ update_id: updateId, ...update });
    this.#changed();
    return updateId;
  }

  say(from: string, chat: string, messageId: string, text: string, more: JsonObject = {}): number {
    return this.push({ message: messageOf(from, chat, messageId, text, more) });
  }

  press(from: string, chat: string, data: string, queryId: string): number {
    const message = { message_id: 1, chat: { id: Number(chat), type: "private" }, date: 0 };
    return this.push({
      callback_query: { id: queryId, from: { id: Number(from), is_bot: false }, message, data },
    });
  }

  /** Resolves when a condition holds, which is checked after every call and update. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => void this.#watchers.add(resolve));
  }

  #changed(): void {
    for (const watcher of this.#watchers) watcher();
    this.#watchers.clear();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "";
    const file = /^\/file\/bot[^/]+\/(.+)$/u.exec(path)?.[1];
    if (file !== undefined) return void response.end(this.files.get(file));
    let source = "";
    for await (const piece of request) source += String(piece);
    const [, token, method = ""] = /^\/bot([^/]+)\/(\w+)$/u.exec(path) ?? [];
    const call = { method, body: JSON.parse(source) as JsonObject };
    this.calls.push(call);
    this.#changed();
    if (token !== botToken) return reply(response, 401, { ok: false, description: "Unauthorized" });
    const disturbed = this.disturb(call);
    if (disturbed === "hang up") return void response.destroy();
    if (disturbed !== undefined) return reply(response, disturbed.status, { ok: false, ...disturbed.body });
    const result = await this.#result(call, request);
    this.#changed();
    if (!response.destroyed) reply(response, 200, { ok: true, result });
  }

  async #result({ method, body }: Call, request: IncomingMessage): Promise<JsonValue> {
    switch (method) {
      case "getMe":
        return { id: 123_456, is_bot: true, username: "reeve_bot" };
      case "getUpdates":
        return this.#poll(Number(body["offset"] ?? 0), request);
      case "sendMessage":
        this.sent.push(body as SentMessage);
        return { message_id: this.#nextMessage++ };
      case "getFile":
        return { file_path: body["file_id"] as string };
      default:
        return true;
    }
  }

  /** Waits for an update, like the API, and forgets those below the offset. */
  async #poll(offset: number, request: IncomingMessage): Promise<JsonValue> {
    const left = this.#updates.filter((each) => Number(each["update_id"]) >= offset);
    this.#updates.splice(0, this.#updates.length, ...left);
    const { socket } = request;
    const wake = (): void => this.#changed();
    socket.once("close", wake);
    await this.until(() => socket.destroyed || this.#updates.length > 0 || !this.#server.listening);
    socket.off("close", wake);
    const oldest = this.#updates
      .toSorted((one, other) => Number(one["update_id"]) - Number(other["update_id"]))
      .slice(0, this.maxUpdates);
    return [...this.shuffle(oldest)];
  }
}

export function messageOf(
  from: string,
  chat: string,
  messageId: string,
  text: string,
  more: JsonObject = {},
): JsonObject {
  return {
    message_id: Number(messageId),
    date: 0,
    from: { id: Number(from), is_bot: false, first_name: `Person ${from}` },
    chat: { id: Number(chat), type: "private" },
    text,
    ...more,
  };
}

function reply(response: ServerResponse, status: number, body: JsonObject): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
