import {
  Fault,
  nameProblem,
  type JsonObject,
  type JsonValue,
  type StoredRecord,
} from "../../../kernel/index.ts";
import type { IncomingMessage } from "../channel.ts";
import { shortDigest } from "../../http/short-digest.ts";
import type { OfferedTopUp } from "./continued-run.ts";

/** The commands that every channel understands. Other texts with a slash are messages. */
export type ChannelCommand = "start" | "new" | "stop";

/**
 * A message that is not answered yet. `queued`: its run is not submitted. `running`: `runId` is its run.
 * `answering`: the platform has received the first `sent` pieces of the answer.
 */
export interface StoredMessage {
  readonly messageId: string;
  readonly conversationId: string;
  readonly senderId: string;
  readonly text: string;
  readonly attachments: readonly JsonValue[];
  readonly order: number;
  readonly receivedAt: number;
  readonly sessionId: string;
  readonly command: ChannelCommand | null;
  /** Token of the question that the message answers. `null` for any other message. */
  readonly answers: string | null;
  readonly state: "queued" | "running" | "answering";
  readonly runId: string | null;
  /**
   * The run that the person has continued with a top-up, and the message that the run answers. Absent for any other
   * message.
   */
  readonly continues?: { readonly topUp: OfferedTopUp; readonly messageId: string };
  /** The answer, if no run gives it. */
  readonly reply: string | null;
  readonly sent: number;
}

/**
 * A stored message together with its place in the store. Only the process that holds the channel's lease changes
 * it.
 */
export interface MessageEntry {
  readonly key: string;
  version: number;
  message: StoredMessage;
}

export function entryOf({ key, version, value }: StoredRecord): MessageEntry {
  return { key, version, message: value as unknown as StoredMessage };
}

export function valueOf(message: StoredMessage): JsonObject {
  return message as unknown as JsonObject;
}

/** Key of a message, in all namespaces. */
export function messageKey(channel: string, conversationId: string, messageId: string): string {
  return `${channel}/${shortDigest(conversationId)}/${shortDigest(messageId)}`;
}

/** Returns the id of the run that answers a message (rule N1). */
export function runIdOf(channel: string, conversationId: string, messageId: string): string {
  return `run_${shortDigest("channel", channel, conversationId, messageId)}`;
}

/** Compares two messages by their order in the session (rule N2). */
export function compareEntries({ message: one }: MessageEntry, { message: other }: MessageEntry): number {
  return one.order - other.order || one.receivedAt - other.receivedAt;
}

/** Longest text of a message, in bytes of UTF-8. A stored message must fit into a record. */
const maxTextBytes = 40_000;
const maxAttachmentBytes = 8_000;

/** Throws `invalid_argument` or `too_large` for a message that cannot be stored. */
export function checkMessage(message: IncomingMessage): void {
  const { messageId, conversationId, senderId, text, attachments = [], order = 0 } = message;
  for (const [field, id] of Object.entries({ messageId, conversationId, senderId })) {
    const problem = nameProblem(id);
    if (problem !== undefined)
      throw new Fault("invalid_argument", `invalid ${field} of a message: ${problem}`);
  }
  if (typeof text !== "string" || (text.trim() === "" && attachments.length === 0))
    throw new Fault("invalid_argument", "invalid text of a message: it is empty");
  if (!Number.isFinite(order))
    throw new Fault("invalid_argument", `invalid order ${order} of a message: expected a number`);
  if (
    Buffer.byteLength(text) > maxTextBytes ||
    Buffer.byteLength(JSON.stringify(text)) > maxTextBytes * 1.25 ||
    Buffer.byteLength(JSON.stringify(attachments)) > maxAttachmentBytes
  )
    throw new Fault("too_large", `the message has more than ${maxTextBytes} bytes`);
}

/** The command of a text, if it is one. */
export function commandOf(text: string): ChannelCommand | null {
  const [, name] = /^\/(start|new|stop)\s*$/u.exec(text.trim()) ?? [];
  return (name as ChannelCommand | undefined) ?? null;
}
