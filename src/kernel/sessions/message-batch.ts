import type { ChatMessage } from "../messages/chat-message.ts";
import type { RunId, TaskId } from "../base/identity.ts";
import type { SessionEntry } from "./session-entry.ts";

/**
 * What a task said, one message after another: an entry each, under the one before. The entries are made out when somebody asks for them,
 * since most conversations are longer than they are often read (F1).
 */
export interface Said {
  readonly runId: RunId;
  readonly taskId: TaskId;
  /** Epoch milliseconds. */
  readonly at: number;
  /** The entry before the first of them. */
  readonly parentId: string | null;
  /** The id of each is this, a slash and its number. */
  readonly stem: string;
  /** Of the first. */
  readonly from: number;
  readonly messages: readonly ChatMessage[];
}

/**
 * What a task that was stopped has said is under ids of its own: gone on with, it may come by other words in the same places (S1). `resumed`: how
 * often it had been gone on with by then.
 */
export function stoppedStem(stem: string, resumed: number): string {
  return `${stem}/stopped-${resumed}`;
}

/** Whose words they are: the stem of what is said at the end that nobody stopped. */
export function baseStem(stem: string): string {
  return stem.replace(/\/stopped-\d+$/u, "");
}

export function saidId({ stem, from }: Said, index: number): string {
  return `${stem}/${from + index}`;
}

export function saidEntry(said: Said, index: number): SessionEntry {
  const { runId, taskId, at, messages } = said;
  const message = messages[index] as ChatMessage;
  const parentId = index === 0 ? said.parentId : saidId(said, index - 1);
  return { type: "message", id: saidId(said, index), parentId, at, runId, taskId, message };
}

export function saidEntries(said: Said): SessionEntry[] {
  return said.messages.map((_message, index) => saidEntry(said, index));
}

const number = /^(?:0|[1-9][0-9]{0,8})$/;

/** Which of them has this id; -1 if none has. */
export function indexInSaid({ stem, from, messages }: Said, id: string): number {
  const slash = stem.length;
  if (id.length <= slash + 1 || id[slash] !== "/" || !id.startsWith(stem)) return -1;
  const text = id.slice(slash + 1);
  const index = number.test(text) ? Number(text) - from : -1;
  return index >= 0 && index < messages.length ? index : -1;
}
