import { timingSafeEqual } from "node:crypto";
import { sha256 } from "../../../runtime/index.ts";
import {
  Fault,
  readProperty,
  type JsonObject,
  type JsonValue,
  type UserPart,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { jsonBody } from "../../http/request-body.ts";
import type {
  ChannelAdapter,
  ChannelPort,
  ClosedQuestion,
  OutgoingMessage,
  SendOutcome,
} from "../channel.ts";
import { backoffMs, wait } from "../work/wait.ts";
import { TelegramApi, TelegramError } from "./telegram-api.ts";
import { formatted, telegramPieces } from "./telegram-format.ts";
import { chatOf, readUpdate, updateIdOf } from "./telegram-update.ts";

/** Options of `telegramChannel`. */
export interface TelegramOptions {
  /** Default: `telegram`. */
  readonly name?: string;
  /** Token of the bot, from @BotFather. */
  readonly token: string;
  /**
   * How updates arrive. `poll`: the channel asks for them, and needs no public address. `webhook`: Telegram sends them to
   * `/channels/NAME`. Default: `poll`.
   */
  readonly mode?: "poll" | "webhook";
  /** With `webhook`: the token that Telegram sends with each update, 16 to 256 letters, digits, `_` or `-`. */
  readonly secretToken?: string;
  /** With `webhook`: the public address of `/channels/NAME`. If present, the channel registers it with Telegram. */
  readonly webhookUrl?: string;
  /** Address of the Bot API. Default: `https://api.telegram.org`. */
  readonly apiUrl?: string;
  /** How long one request for updates waits, in seconds. Default: 50. */
  readonly pollSeconds?: number;
}

const knownOptions = optionTable({
  name: is.text(),
  token: is.text(),
  mode: is.choice(["poll", "webhook"]),
  secretToken: is.text(),
  webhookUrl: is.text(),
  apiUrl: is.text(),
  pollSeconds: is.number({ from: 0 }),
} satisfies OptionKinds<TelegramOptions>);

const updateKinds = ["message", "callback_query"] as const;
/**
 * Time after which a stored offset is no longer used, in milliseconds. After a week without updates, Telegram may
 * continue with lower numbers, which an old offset would skip.
 */
const offsetMs = 6 * 86_400_000;

/** A channel for a Telegram bot. */
export function telegramChannel(options: TelegramOptions): ChannelAdapter {
  knownOptions.read("telegramChannel()", options);
  return new TelegramChannel(options);
}

class TelegramChannel implements ChannelAdapter {
  readonly name: string;
  readonly platform = "telegram";
  readonly fetch?: NonNullable<ChannelAdapter["fetch"]>;
  readonly poll?: NonNullable<ChannelAdapter["poll"]>;
  readonly #api: TelegramApi;
  readonly #options: TelegramOptions;
  #botName: string | undefined;

  constructor(options: TelegramOptions) {
    const {
      name = "telegram",
      token,
      mode = "poll",
      secretToken,
      apiUrl = "https://api.telegram.org",
    } = options;
    if (!/^\d+:[\w-]{20,}$/u.test(token))
      throw new Fault(
        "invalid_argument",
        `invalid token of channel ${name}: expected NUMBER:TEXT from @BotFather`,
      );
    this.name = name;
    this.#options = options;
    this.#api = new TelegramApi(token, apiUrl);
    if (mode === "poll") this.poll = (port, signal) => this.#poll(port, signal);
    else {
      if (secretToken === undefined || !/^[\w-]{16,256}$/u.test(secretToken))
        throw new Fault(
          "invalid_argument",
          `invalid secret token of channel ${name}: expected 16 to 256 letters, digits, _ or -`,
        );
      this.fetch = (request, port) => this.#receive(request, port, secretToken);
    }
  }

  senderProblem(senderId: string): string | undefined {
    if (/^\d{1,20}$/u.test(senderId)) return undefined;
    return "expected the number of a user, because user names can pass to others";
  }

  pieces(text: string): readonly string[] {
    return telegramPieces(text);
  }

  async start(signal: AbortSignal): Promise<void> {
    const { mode = "poll", secretToken, webhookUrl } = this.#options;
    const name = readProperty(await this.#api.call("getMe", {}, signal), "username");
    this.#botName = typeof name === "string" ? name : undefined;
    if (mode === "poll") await this.#api.call("deleteWebhook", {}, signal);
    else if (webhookUrl !== undefined && secretToken !== undefined)
      await this.#api.call(
        "setWebhook",
        {
          url: webhookUrl,
          secret_token: secretToken,
          allowed_updates: updateKinds,
          // With several connections, messages would arrive in any order.
          max_connections: 1,
        },
        signal,
      );
  }

  async send(message: OutgoingMessage, signal: AbortSignal): Promise<SendOutcome> {
    const { conversationId, kind, text, choices = [], replyTo, piece } = message;
    // Only answers are Markdown. Questions show arguments of calls, which must look as they are.
    const shown = kind === "answer" ? formatted(text) : { text, entities: [] };
    const isGroup = conversationId.startsWith("-");
    const parameters: JsonObject = {
      ...chatOf(conversationId),
      text: shown.text,
      // A preview would send the address, and what a model put into it, to its server without a click.
      link_preview_options: { is_disabled: true },
      ...(shown.entities.length > 0 && { entities: shown.entities as unknown as JsonValue }),
      ...(choices.length > 0 && { reply_markup: keyboard(choices) }),
      ...(isGroup &&
        piece === 1 &&
        replyTo !== undefined && {
          reply_parameters: { message_id: Number(replyTo), allow_sending_without_reply: true },
        }),
    };
    try {
      return await this.#sendMessage(parameters, signal);
    } catch (error) {
      return outcomeOf(error);
    }
  }

  async showTyping(conversationId: string, signal: AbortSignal): Promise<void> {
    await this.#api.call("sendChatAction", { ...chatOf(conversationId), action: "typing" }, signal);
  }

  async closeQuestion(question: ClosedQuestion, signal: AbortSignal): Promise<void> {
    const { conversationId, ref, text, decision } = question;
    const { chat_id } = chatOf(conversationId);
    const last = telegramPieces(text).at(-1) ?? "";
    const parameters = { chat_id, message_id: Number(ref), text: `${last}\n\n${decision}` };
    await this.#api.call("editMessageText", parameters, signal);
  }

  async attachment(reference: JsonValue, signal: AbortSignal): Promise<UserPart> {
    const fileId = readProperty(reference, "fileId");
    const mediaType = readProperty(reference, "mediaType");
    const filename = readProperty(reference, "filename");
    if (typeof fileId !== "string" || typeof mediaType !== "string")
      throw new Fault("invalid_argument", "invalid reference to a file");
    const data = (await this.#api.download(fileId, signal)).toString("base64");
    const source = { kind: "base64", data } as const;
    if (mediaType.startsWith("image/")) return { type: "image", mediaType, source };
    return { type: "file", mediaType, source, ...(typeof filename === "string" && { filename }) };
  }

  async #sendMessage(parameters: JsonObject, signal: AbortSignal): Promise<SendOutcome> {
    const send = async (changes: JsonObject): Promise<SendOutcome> => {
      const sent = await this.#api.call("sendMessage", { ...parameters, ...changes }, signal);
      const id = readProperty(sent, "message_id");
      return { kind: "sent", ...(typeof id === "number" && { ref: String(id) }) };
    };
    try {
      return await send({});
    } catch (error) {
      if (!(error instanceof TelegramError)) throw error;
      if (error.migratedTo !== undefined) return send({ chat_id: error.migratedTo });
      // The text is more important than its format.
      if (error.code === 400 && "entities" in parameters) return send({ entities: [] });
      throw error;
    }
  }

  /** Asks for updates until the signal aborts. The offset is stored after everything before it is stored (N1). */
  async #poll(port: ChannelPort, signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted;) {
      try {
        await this.#pollOnce(port, signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        const { retryAfterMs } = error instanceof TelegramError ? error : { retryAfterMs: undefined };
        if (failures === 0) port.log(`channel ${this.name}: ${Fault.from(error).message}`);
        await wait(port.clock, retryAfterMs ?? backoffMs(failures), signal);
        failures++;
      }
    }
  }

  async #pollOnce(port: ChannelPort, signal: AbortSignal): Promise<void> {
    const { pollSeconds = 50 } = this.#options;
    const cursor = (await port.readCursor()) as { offset: number; at: number } | undefined;
    const isFresh = cursor !== undefined && port.clock.now() - cursor.at < offsetMs;
    const found = await this.#api.call(
      "getUpdates",
      {
        timeout: pollSeconds,
        allowed_updates: updateKinds,
        ...(isFresh && { offset: cursor.offset }),
      },
      signal,
      (pollSeconds + 15) * 1_000,
    );
    const updates = (Array.isArray(found) ? (found as unknown[]) : []).toSorted(
      (one, other) => updateIdOf(one) - updateIdOf(other),
    );
    for (const update of updates) await this.#handle(update, port, signal);
    const last = updates.at(-1);
    if (last !== undefined) await port.writeCursor({ offset: updateIdOf(last) + 1, at: port.clock.now() });
  }

  async #receive(request: Request, port: ChannelPort, secretToken: string): Promise<Response> {
    const token = request.headers.get("x-telegram-bot-api-secret-token") ?? "";
    if (!isEqual(token, secretToken))
      throw new Fault("unauthenticated", "the secret token of the webhook is wrong");
    const update = await jsonBody(request);
    await this.#handle(update, port, request.signal);
    return Response.json({});
  }

  /** Stores what an update says. An update that can never be stored is logged and skipped. */
  async #handle(update: unknown, port: ChannelPort, signal: AbortSignal): Promise<void> {
    const read = readUpdate(update, this.#botName);
    try {
      if (read.kind === "message") await port.receive(read.message);
      if (read.kind !== "decision") return;
      const { kind, text } = await port.decide(read.decision);
      await this.#answerQuery(read.queryId, text, kind !== "accepted", { port, signal });
    } catch (error) {
      const { code, message } = Fault.from(error);
      if (code !== "invalid_argument" && code !== "too_large") throw error;
      port.log(`channel ${this.name}: skipped an update: ${message}`);
    }
  }

  /**
   * Tells the person who pressed a button whether the decision was accepted. The decision counts also if this message
   * fails.
   */
  async #answerQuery(
    queryId: string,
    text: string,
    isAlert: boolean,
    { port, signal }: { readonly port: ChannelPort; readonly signal: AbortSignal },
  ): Promise<void> {
    const parameters = { callback_query_id: queryId, text: text.slice(0, 200), show_alert: isAlert };
    try {
      await this.#api.call("answerCallbackQuery", parameters, signal);
    } catch (error) {
      port.log(`channel ${this.name}: ${(error as Error).message}`);
    }
  }
}

function keyboard(choices: NonNullable<OutgoingMessage["choices"]>): JsonObject {
  const buttons = choices.map(({ label, data }) => ({ text: label, callback_data: data }));
  return { inline_keyboard: buttons.length <= 2 ? [buttons] : buttons.map((each) => [each]) };
}

function outcomeOf(error: unknown): SendOutcome {
  if (!(error instanceof TelegramError)) return { kind: "retry", reason: Fault.from(error).message };
  const { code, message: reason, retryAfterMs } = error;
  // 401: the token was revoked and may be replaced.
  if (code >= 400 && code < 500 && code !== 429 && code !== 401 && code !== 408)
    return { kind: "failed", reason };
  return { kind: "retry", reason, ...(retryAfterMs !== undefined && { afterMs: retryAfterMs }) };
}

/** Compares two texts in a time that depends on neither of them. */
function isEqual(one: string, other: string): boolean {
  return timingSafeEqual(hashOf(one), hashOf(other));
}

function hashOf(text: string): Buffer {
  return Buffer.from(sha256(text));
}
