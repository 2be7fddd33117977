import { userMessage, type ChatMessage } from "./chat-message.ts";
import type { SessionEntry } from "./session-entry.ts";

/** Where a conversation goes on: at the last thing said in it, or where somebody has put its leaf since. */
export function leafOf(entries: readonly SessionEntry[]): string | null {
  let leafId: string | null = null;
  for (const entry of entries) {
    if (entry.type === "leaf") leafId = entry.targetId;
    else if (entry.type !== "label" && entry.type !== "session_info") leafId = entry.id;
  }
  return leafId;
}

/** From the root to the leaf. `undefined`: the leaf is not among the entries. */
export function pathTo(
  entries: readonly SessionEntry[],
  leafId: string | null,
): readonly SessionEntry[] | undefined {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  if (leafId !== null && !byId.has(leafId)) return undefined;
  const path: SessionEntry[] = [];
  for (let at = leafId === null ? undefined : byId.get(leafId); at !== undefined;) {
    path.push(at);
    at = at.parentId === null ? undefined : byId.get(at.parentId);
  }
  return path.toReversed();
}

/**
 * What a path says to a model. S3: of the path before a compaction only what it kept is there, behind its summary; the last compaction
 * stands for all before it.
 */
export function pathMessages(path: readonly SessionEntry[]): readonly ChatMessage[] {
  const place = path.findLastIndex(({ type }) => type === "compaction");
  const compaction = path[place];
  if (compaction?.type !== "compaction") return path.flatMap(messagesOf);
  const first = path.findIndex(({ id }) => id === compaction.firstKeptEntryId);
  const kept = first < 0 || first > place ? [] : path.slice(first, place);
  return [summaryMessage(compaction.summary), ...[...kept, ...path.slice(place + 1)].flatMap(messagesOf)];
}

/** Said by nobody: it stands in for what was. */
export function summaryMessage(summary: string): ChatMessage {
  return userMessage(`[What was said before, in short]\n\n${summary}`);
}

function messagesOf(entry: SessionEntry): readonly ChatMessage[] {
  if (entry.type === "message" || entry.type === "custom_message") return [entry.message];
  if (entry.type === "branch_summary")
    return [userMessage(`[What was tried before, and left]\n\n${entry.summary}`)];
  return [];
}
