import { messageText, type SessionEntry } from "../../../src/kernel/index.ts";
import type { SessionTree } from "../../api/types.ts";
import { counted, oneLine } from "../../base/format.ts";
import { answerOf, interruptedWords } from "./history.ts";

type TreeNode = SessionTree["nodes"][number];

/** One line of a session's tree. */
export interface SessionRow {
  readonly entry: SessionEntry;
  readonly text: string;
  readonly who: "person" | "agent" | "note";
  readonly label: string | null;
  readonly isOnPath: boolean;
  /** 0 is the main line; each branch is one further to the right. */
  readonly rail: number;
  /** Whether the line begins a branch. */
  readonly isBranch: boolean;
  /** Rails that continue below this line. */
  readonly below: ReadonlySet<number>;
}

/** The lines of a session's tree: each entry before what follows it, branches before the line that continues. */
export function sessionRows(tree: SessionTree): readonly SessionRow[] {
  const nodes = new Map(tree.nodes.map((node) => [node.entry.id, node]));
  const rows: SessionRow[] = [];
  const visit = (id: string, rail: number, isBranch: boolean, open: ReadonlySet<number>): void => {
    const node = nodes.get(id);
    if (node === undefined) return;
    const children = ordered(node.children, nodes);
    const shown = rowOf(node);
    const below = new Set(open);
    if (children.length > 0) below.add(rail);
    else below.delete(rail);
    if (shown !== null) rows.push({ ...shown, rail, isBranch, below });
    for (const [at, child] of children.entries()) {
      const isLast = at === children.length - 1;
      visit(
        child,
        isLast ? rail : rail + 1,
        isLast ? isBranch && shown === null : true,
        isLast ? open : below,
      );
    }
  };
  for (const [at, root] of ordered(tree.roots, nodes).entries())
    visit(root, at === tree.roots.length - 1 ? 0 : 1, false, new Set());
  return rows;
}

/** How many entries a session has. Calls of tools and their results are entries without a line of their own. */
export function entryWords(entries: number, lines: number): string {
  const all = counted(entries, "entry", "entries");
  return lines === entries || lines === 0 ? all : `${all} in ${counted(lines, "line")}`;
}

/** The child on the path comes last, so that the main line continues straight. */
function ordered(ids: readonly string[], nodes: ReadonlyMap<string, TreeNode>): readonly string[] {
  return ids.toSorted((one, other) => Number(nodes.get(one)?.isOnPath) - Number(nodes.get(other)?.isOnPath));
}

function rowOf({ entry, label, isOnPath }: TreeNode): Omit<SessionRow, "rail" | "isBranch" | "below"> | null {
  const row = textOfEntry(entry);
  return row === null || row.text === "" ? null : { entry, label, isOnPath, ...row };
}

function textOfEntry(entry: SessionEntry): Pick<SessionRow, "text" | "who"> | null {
  switch (entry.type) {
    case "message":
    case "custom_message": {
      const { role } = entry.message;
      if (role === "tool" || role === "system") return null;
      if (role === "user") return { text: oneLine(messageText(entry.message)), who: "person" };
      const { text, interrupted } = answerOf(entry.message);
      return {
        text: oneLine(text === "" && interrupted !== null ? interruptedWords(interrupted) : text),
        who: "agent",
      };
    }
    case "compaction":
    case "branch_summary":
      return { text: `Summary: ${oneLine(entry.summary)}`, who: "note" };
    default:
      return null;
  }
}
