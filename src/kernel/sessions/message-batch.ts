import type { ChatMessage } from "../messages/chat-message.ts";
import type { RunId, TaskId } from "../base/identity.ts";
import type { MessageSource, SessionEntry } from "./session-entry.ts";

/**
 * Consecutive messages that one task appends to a session. Each message is one entry, whose parent is the entry
 * before it. F1: entries are created only when they are read, because most conversations are written more often
 * than they are read.
 *
 * @advanced
 */
export interface MessageBatch {
  /** Id of the run that wrote the messages. */
  readonly runId: RunId;
  /** Id of the task that wrote the messages. */
  readonly taskId: TaskId;
  /** Time at which the messages were written, in epoch milliseconds. */
  readonly at: number;
  /** Id of the entry before the first message. `null` if the first message starts the session. */
  readonly parentId: string | null;
  /** Common prefix (stem) of the entry ids. The id of an entry is `<stem>/<number>`. */
  readonly stem: string;
  /** Number of the first message among those with this stem. */
  readonly from: number;
  /** The messages, oldest first. */
  readonly messages: readonly ChatMessage[];
  /**
   * The model that wrote each message, by position. `null` for a message that no model wrote. If absent, no model
   * wrote any of the messages.
   */
  readonly sources?: readonly (MessageSource | null)[];
}

/**
 * Returns the stem, which is the prefix of entry ids, for messages that a task writes when it is stopped. After a
 * resume the task may write different messages at the same positions, so that each stop needs its own stem (S1).
 * `resumed` is the number of times the task had been resumed before the stop.
 */
export function stoppedStem(stem: string, resumed: number): string {
  return `${stem}/stopped-${resumed}`;
}

/**
 * Returns the stem, which is the prefix of entry ids, that the same task uses when it ends without being stopped.
 * It removes the suffix that `stoppedStem` adds.
 */
export function baseStem(stem: string): string {
  return stem.replace(/\/stopped-\d+$/u, "");
}

/** Returns the entry id of the message at `index` of the batch. */
export function batchEntryId({ stem, from }: MessageBatch, index: number): string {
  return `${stem}/${from + index}`;
}

/** Returns the session entry of the message at `index` of the batch. */
export function batchEntry(batch: MessageBatch, index: number): SessionEntry {
  const { runId, taskId, at, messages } = batch;
  const message = messages[index] as ChatMessage;
  const parentId = index === 0 ? batch.parentId : batchEntryId(batch, index - 1);
  const id = batchEntryId(batch, index);
  return { type: "message", id, parentId, at, runId, taskId, message, ...batchSource(batch, index) };
}

/** Returns which model wrote the message at `index` of the batch, or `undefined` if no model wrote it. */
export function batchSource({ sources }: MessageBatch, index: number): MessageSource | undefined {
  const source = sources?.[index];
  if (source === undefined || source === null) return undefined;
  const { model, stopReason, usage } = source;
  return { model, stopReason, usage };
}

/** Returns the session entries of all messages of the batch, oldest first. @advanced */
export function batchEntries(batch: MessageBatch): SessionEntry[] {
  return batch.messages.map((_message, index) => batchEntry(batch, index));
}

const number = /^(?:0|[1-9][0-9]{0,8})$/;

/** Returns the index of the message whose entry has this id, or -1 if the batch contains no such entry. */
export function indexInBatch({ stem, from, messages }: MessageBatch, id: string): number {
  const slash = stem.length;
  if (id.length <= slash + 1 || id[slash] !== "/" || !id.startsWith(stem)) return -1;
  const text = id.slice(slash + 1);
  const index = number.test(text) ? Number(text) - from : -1;
  return index >= 0 && index < messages.length ? index : -1;
}
