import { readProperty, type JsonValue } from "../../../kernel/index.ts";
import type { IncomingDecision, IncomingMessage } from "../channel.ts";

/** An update of the Bot API, as far as it concerns a channel. */
export type ReadUpdate =
  | { readonly kind: "message"; readonly message: IncomingMessage }
  | { readonly kind: "decision"; readonly queryId: string; readonly decision: IncomingDecision }
  /** An update that the channel ignores, such as an edited message, a sticker or a message of a bot. */
  | { readonly kind: "other" };

const other: ReadUpdate = { kind: "other" };

/** Reads an update. `botName` is the user name of the bot, to which commands in groups are addressed. */
export function readUpdate(update: unknown, botName: string | undefined): ReadUpdate {
  const message = readProperty(update, "message");
  if (message !== undefined) return readMessage(message, botName);
  const query = readProperty(update, "callback_query");
  return query === undefined ? other : readQuery(query);
}

export function updateIdOf(update: unknown): number {
  const id = readProperty(update, "update_id");
  return typeof id === "number" ? id : -1;
}

function readMessage(message: unknown, botName: string | undefined): ReadUpdate {
  const senderId = userIdOf(readProperty(message, "from"));
  const conversationId = conversationOf(message);
  const messageId = readProperty(message, "message_id");
  if (senderId === undefined || conversationId === undefined || typeof messageId !== "number") return other;
  const text = textOf(message, botName);
  const attachments = attachmentsOf(message);
  if (text === undefined || (text.trim() === "" && attachments.length === 0)) return other;
  const senderName = nameOf(readProperty(message, "from"));
  return {
    kind: "message",
    message: {
      messageId: String(messageId),
      conversationId,
      senderId,
      text,
      attachments,
      order: messageId,
      isPrivate: readProperty(readProperty(message, "chat"), "type") === "private",
      ...(senderName !== "" && { senderName }),
    },
  };
}

function readQuery(query: unknown): ReadUpdate {
  const queryId = readProperty(query, "id");
  const senderId = userIdOf(readProperty(query, "from"));
  const conversationId = conversationOf(readProperty(query, "message"));
  const data = readProperty(query, "data");
  if (typeof queryId !== "string" || senderId === undefined) return other;
  if (conversationId === undefined || typeof data !== "string") return other;
  return { kind: "decision", queryId, decision: { conversationId, senderId, data } };
}

/**
 * Returns the id of a person. `undefined` for a bot, as which anonymous administrators and linked channels also
 * appear.
 */
function userIdOf(user: unknown): string | undefined {
  const id = readProperty(user, "id");
  return typeof id === "number" && readProperty(user, "is_bot") !== true ? String(id) : undefined;
}

/** Returns the conversation of a message: a chat, or a topic of a chat as `CHAT/TOPIC`. */
function conversationOf(message: unknown): string | undefined {
  const chat = readProperty(readProperty(message, "chat"), "id");
  if (typeof chat !== "number") return undefined;
  const topic = readProperty(message, "message_thread_id");
  const isTopic = readProperty(message, "is_topic_message") === true && typeof topic === "number";
  return isTopic ? `${chat}/${topic}` : String(chat);
}

/** The chat and the topic of a conversation, as parameters of a call. */
export function chatOf(conversationId: string): { chat_id: number; message_thread_id?: number } {
  const [chat = "", topic] = conversationId.split("/");
  return { chat_id: Number(chat), ...(topic !== undefined && { message_thread_id: Number(topic) }) };
}

/**
 * Returns the text or caption of a message, and a command without the name of the bot. `undefined` if the command
 * is for another bot.
 */
function textOf(message: unknown, botName: string | undefined): string | undefined {
  const text = readProperty(message, "text") ?? readProperty(message, "caption") ?? "";
  if (typeof text !== "string") return undefined;
  const [whole, command, addressee] = /^(\/\w+)@(\w+)/u.exec(text) ?? [];
  if (whole === undefined || command === undefined || addressee === undefined) return text;
  if (botName !== undefined && addressee.toLowerCase() !== botName.toLowerCase()) return undefined;
  return command + text.slice(whole.length);
}

function nameOf(user: unknown): string {
  return ["first_name", "last_name", "username"]
    .map((field) => readProperty(user, field))
    .filter((each) => typeof each === "string")
    .join(" ")
    .slice(0, 100)
    .toWellFormed();
}

/** References to the largest size of a photo and to a document. */
function attachmentsOf(message: unknown): readonly JsonValue[] {
  const found: JsonValue[] = [];
  const photo = readProperty(message, "photo");
  const largest: unknown = Array.isArray(photo) ? photo.at(-1) : undefined;
  const photoId = readProperty(largest, "file_id");
  if (typeof photoId === "string") found.push({ fileId: photoId, mediaType: "image/jpeg" });
  const document = readProperty(message, "document");
  const documentId = readProperty(document, "file_id");
  const type = readProperty(document, "mime_type");
  const name = readProperty(document, "file_name");
  if (typeof documentId === "string")
    found.push({
      fileId: documentId,
      mediaType: typeof type === "string" ? type : "application/octet-stream",
      ...(typeof name === "string" && { filename: name.slice(0, 255).toWellFormed() }),
    });
  return found;
}
