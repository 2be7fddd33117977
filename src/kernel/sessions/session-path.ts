import { rootTaskId as root } from "../base/identity.ts";
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

/** N2: the same for a session that runs go on with: what their children wrote there is not the conversation. */
export function rootLeafOf(entries: readonly SessionEntry[]): string | null {
  return leafOf(entries.filter(({ taskId }) => (taskId ?? root) === root));
}

/** From the root to the leaf. `undefined`: the leaf is not among the entries. */
export function pathTo(
  entries: readonly SessionEntry[],
  leafId: string | null,
): readonly SessionEntry[] | undefined {
  if (leafId === null) return [];
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  if (!byId.has(leafId)) return undefined;
  const path: SessionEntry[] = [];
  for (let at = byId.get(leafId); at !== undefined;) {
    path.push(at);
    at = at.parentId === null ? undefined : byId.get(at.parentId);
  }
  return path.toReversed();
}
