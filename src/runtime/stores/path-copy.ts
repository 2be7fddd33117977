import type { SessionEntry } from "../../kernel/index.ts";

/** N7: returns the entries of a copy, whose first entry has no parent. */
export function withoutParent([first, ...others]: readonly SessionEntry[]): readonly SessionEntry[] {
  return first === undefined ? others : [{ ...first, parentId: null }, ...others];
}

/**
 * N7: returns the current label of each entry of a path, as children of the last entry of the path. Removed labels
 * are left out.
 */
export function labelsInForce(
  labels: readonly SessionEntry[],
  leafId: string,
  isOnPath: (entryId: string) => boolean,
): readonly SessionEntry[] {
  const last = new Map<string, SessionEntry>();
  for (const entry of labels) {
    if (entry.type !== "label" || !isOnPath(entry.targetId)) continue;
    last.delete(entry.targetId);
    if (entry.label !== null) last.set(entry.targetId, { ...entry, parentId: leafId });
  }
  return [...last.values()];
}
