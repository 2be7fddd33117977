import { userMessage, type ChatMessage } from "../messages/chat-message.ts";
import type { SessionEntry } from "./session-entry.ts";
import { summaryMessage } from "../messages/summary-message.ts";

/** An entry that the model is shown, with what it is shown. */
export interface ShownEntry {
  readonly entry: SessionEntry;
  readonly message: ChatMessage;
}

/** What of a path the model is shown as it is, and what stands in for the rest. */
export interface SessionContext {
  /** Of the newest compaction; `null` where there was none. */
  readonly summary: string | null;
  readonly shown: readonly ShownEntry[];
}

/** S3: a compaction hides what lies before the first entry it kept; all of it is still there. */
export function sessionContext(path: readonly SessionEntry[]): SessionContext {
  const place = path.findLastIndex(({ type }) => type === "compaction");
  const compaction = path[place];
  if (compaction?.type !== "compaction") return { summary: null, shown: path.flatMap(shown) };
  const first = path.findIndex(({ id }) => id === compaction.firstKeptEntryId);
  const kept = path.slice(first < 0 ? place : first);
  return { summary: compaction.summary, shown: kept.flatMap(shown) };
}

/** The messages of a path: the summary first, then what was kept and what came since. */
export function contextMessages(path: readonly SessionEntry[]): readonly ChatMessage[] {
  if (path.length === 0) return none;
  const { summary, shown: entries } = sessionContext(path);
  const messages = entries.map(({ message }) => message);
  return summary === null ? messages : [summaryMessage(summary), ...messages];
}

const none: readonly never[] = [];

function shown(entry: SessionEntry): readonly ShownEntry[] {
  if (entry.type === "message" || entry.type === "custom_message") return [{ entry, message: entry.message }];
  if (entry.type !== "branch_summary") return [];
  return [{ entry, message: userMessage(`What was tried on a branch that was left:\n\n${entry.summary}`) }];
}
