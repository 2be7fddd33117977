import type { SessionEntry, SessionNode, SessionTree } from "../../kernel/index.ts";

interface GrowingNode extends SessionNode {
  label: string | null;
  isOnPath: boolean;
  readonly children: string[];
}

/** Builds the tree of the visible entries of a session. An entry whose parent was removed becomes a root. */
export function sessionTree(entries: readonly SessionEntry[], leafId: string | null): SessionTree {
  const nodes = new Map<string, GrowingNode>();
  const roots: string[] = [];
  for (const entry of entries) {
    if (entry.type === "leaf" || entry.type === "session_info") continue;
    if (entry.type === "label") {
      const labelled = nodes.get(entry.targetId);
      if (labelled !== undefined) labelled.label = entry.label;
      continue;
    }
    const node: GrowingNode = { entry, label: null, isOnPath: false, children: [] };
    nodes.set(entry.id, node);
    const parent = entry.parentId === null ? undefined : nodes.get(entry.parentId);
    (parent?.children ?? roots).push(entry.id);
  }
  for (let id = leafId; id !== null;) {
    const node = nodes.get(id);
    // An entry that is marked already closes a circle.
    if (node === undefined || node.isOnPath) break;
    node.isOnPath = true;
    id = node.entry.parentId;
  }
  return { leafId, roots, nodes: [...nodes.values()] };
}
