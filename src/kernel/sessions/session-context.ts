import { rootTaskId as root } from "../base/identity.ts";
import { type ChatMessage, summaryMessage, userMessage } from "../messages/chat-message.ts";
import { isInterruptedMessage, type SessionEntry } from "./session-entry.ts";

/** A session entry that the model sees, with the message that the model receives for it. */
export interface ContextEntry {
  /** The stored entry. */
  readonly entry: SessionEntry;
  /** The message that the model receives for the entry. */
  readonly message: ChatMessage;
}

/** The part of a session path that the model sees, with the summary of the part that a compaction has replaced. */
export interface SessionContext {
  /** Summary of the newest compaction on the path. `null` if the path has none. */
  readonly summary: string | null;
  /** The entries that the model sees after the summary, oldest first. */
  readonly entries: readonly ContextEntry[];
}

/**
 * Returns what the model sees of a path. S3: the newest compaction hides all entries before its first kept entry;
 * the hidden entries remain stored.
 */
export function sessionContext(path: readonly SessionEntry[]): SessionContext {
  const place = path.findLastIndex(({ type }) => type === "compaction");
  const compaction = path[place];
  if (compaction?.type !== "compaction") return { summary: null, entries: contextEntries(path) };
  const first = path.findIndex(({ id }) => id === compaction.firstKeptEntryId);
  const kept = path.slice(first < 0 ? place : first);
  return { summary: compaction.summary, entries: contextEntries(kept) };
}

/**
 * Returns the entries that the model sees. S1: the text that marks an interrupted invocation is left out if a
 * continuation has answered instead.
 */
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

/**
 * Returns the id of the entry after which the conversation continues: the last entry, or the target of a later
 * `leaf` entry. Entries for labels and session names are skipped. `null` for an empty session.
 */
export function leafOf(entries: readonly SessionEntry[]): string | null {
  let leafId: string | null = null;
  for (const entry of entries) {
    if (entry.type === "leaf") leafId = entry.targetId;
    else if (entry.type !== "label" && entry.type !== "session_info") leafId = entry.id;
  }
  return leafId;
}

/**
 * N2: returns the current entry as `leafOf` does, but without the entries of child tasks, which are not part of the
 * conversation that runs continue.
 */
export function rootLeafOf(entries: readonly SessionEntry[]): string | null {
  return leafOf(entries.filter(({ taskId }) => (taskId ?? root) === root));
}

/**
 * Returns the entries from the root to the current entry. The path ends where the next entry is missing or already on the path.
 * `undefined` if `leafId` is not among the entries.
 */
export function pathTo(
  entries: readonly SessionEntry[],
  leafId: string | null,
): readonly SessionEntry[] | undefined {
  if (leafId === null) return [];
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const path = new PathCollector("root");
  for (let id: string | null = leafId; id !== null;) {
    const entry = byId.get(id);
    if (entry === undefined || !path.add(entry)) break;
    id = entry.parentId;
  }
  return path.isEmpty ? undefined : path.take();
}

/** Collects a path from its current entry towards the root. A store uses it to read as few entries as possible. @advanced */
export class PathCollector {
  readonly #entries: SessionEntry[] = [];
  readonly #ids = new Set<string>();
  readonly #from: "root" | "compaction";
  readonly #limit: number;
  /**
   * The newest compaction found so far: the number of entries up to and including it, and the first entry that it
   * keeps.
   */
  #compaction: { readonly end: number; readonly firstKeptEntryId: string } | undefined;
  #isComplete = false;

  /** `limit` is the maximum number of entries for a path from the root. */
  constructor(from: "root" | "compaction", limit = Infinity) {
    this.#from = from;
    this.#limit = limit;
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  /** Adds the parent of the entry that was added before. Returns whether the path continues with a further parent. */
  add(entry: SessionEntry): boolean {
    // A parent that was removed and appended again under its own descendant closes a circle.
    if (this.#ids.has(entry.id)) return false;
    this.#ids.add(entry.id);
    this.#entries.push(entry);
    if (this.#from === "root") return this.#entries.length < this.#limit;
    if (entry.type === "compaction" && this.#compaction === undefined) {
      const { firstKeptEntryId } = entry;
      this.#compaction = { end: this.#entries.length, firstKeptEntryId };
      this.#isComplete = this.#ids.has(firstKeptEntryId);
    } else this.#isComplete = entry.id === this.#compaction?.firstKeptEntryId;
    return !this.#isComplete;
  }

  /**
   * Returns the path, oldest entry first. S3: if the first kept entry of a compaction is not on the path, the path
   * starts with the compaction.
   */
  take(): readonly SessionEntry[] {
    const end = this.#isComplete ? this.#entries.length : (this.#compaction?.end ?? this.#entries.length);
    return this.#entries.slice(0, end).toReversed();
  }
}
