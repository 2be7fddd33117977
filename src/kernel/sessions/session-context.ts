import { userMessage, type ChatMessage } from "../messages/chat-message.ts";
import { isInterruptedMessage } from "./interrupted-message.ts";
import type { SessionEntry } from "./session-entry.ts";
import { summaryMessage } from "../messages/summary-message.ts";

/** A session entry that the model sees, with the message that the model receives for it. */
export interface ContextEntry {
  /** The stored entry. */
  readonly entry: SessionEntry;
  /** The message that the model receives for the entry. */
  readonly message: ChatMessage;
}

/** The part of a session path that the model sees, with the summary of the part that a compaction hides. */
export interface SessionContext {
  /** Summary of the newest compaction on the path. `null` if the path has none. */
  readonly summary: string | null;
  /** The entries that the model sees after the summary, oldest first. */
  readonly entries: readonly ContextEntry[];
}

/**
 * Returns what the model sees of a path. S3: the newest compaction hides all entries before its first kept entry; the
 * hidden entries stay stored.
 */
export function sessionContext(path: readonly SessionEntry[]): SessionContext {
  const place = path.findLastIndex(({ type }) => type === "compaction");
  const compaction = path[place];
  if (compaction?.type !== "compaction") return { summary: null, entries: contextEntries(path) };
  const first = path.findIndex(({ id }) => id === compaction.firstKeptEntryId);
  const kept = path.slice(first < 0 ? place : first);
  return { summary: compaction.summary, entries: contextEntries(kept) };
}

/** S1: a text that says that an invocation was interrupted is left out once a continuation has answered in its place. */
function contextEntries(path: readonly SessionEntry[]): readonly ContextEntry[] {
  const entries = path.flatMap(toContextEntries);
  const isReplaced = ({ message }: ContextEntry, index: number): boolean =>
    isInterruptedMessage(message) && entries[index + 1]?.message.role === "assistant";
  return entries.some(isReplaced) ? entries.filter((entry, index) => !isReplaced(entry, index)) : entries;
}

/** Returns the messages that the model receives for a path: first the summary, if any, then the entries after it. */
export function contextMessages(path: readonly SessionEntry[]): readonly ChatMessage[] {
  if (path.length === 0) return noMessages;
  const { summary, entries } = sessionContext(path);
  const messages = entries.map(({ message }) => message);
  return summary === null ? messages : [summaryMessage(summary), ...messages];
}

const noMessages: readonly never[] = [];

function toContextEntries(entry: SessionEntry): readonly ContextEntry[] {
  if (entry.type === "message" || entry.type === "custom_message") return [{ entry, message: entry.message }];
  if (entry.type !== "branch_summary") return [];
  return [{ entry, message: userMessage(`What was tried on a branch that was left:\n\n${entry.summary}`) }];
}
