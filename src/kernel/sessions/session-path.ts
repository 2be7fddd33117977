import { rootTaskId as root } from "../base/identity.ts";
import type { SessionEntry } from "./session-entry.ts";

/**
 * Returns the id of the entry after which the conversation continues: the last entry, or the target of a later `leaf`
 * entry. Labels and session names do not move the leaf. `null` for an empty session.
 */
export function leafOf(entries: readonly SessionEntry[]): string | null {
  let leafId: string | null = null;
  for (const entry of entries) {
    if (entry.type === "leaf") leafId = entry.targetId;
    else if (entry.type !== "label" && entry.type !== "session_info") leafId = entry.id;
  }
  return leafId;
}

/** N2: like `leafOf`, without the entries of child tasks, which are not part of the conversation that runs continue. */
export function rootLeafOf(entries: readonly SessionEntry[]): string | null {
  return leafOf(entries.filter(({ taskId }) => (taskId ?? root) === root));
}

/** Returns the entries from the root to the leaf. `undefined` if the leaf is not among the entries. */
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
