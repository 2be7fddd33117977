import { describeWork, namedPaths, visibleLine, type Event } from "../../kernel/index.ts";

/**
 * Describes what happened to the folder of a task, as text after the name of its agent. `undefined` for other
 * events.
 */
export function folderWords(event: Event): string | undefined {
  switch (event.type) {
    case "worktree_open": {
      const { path, branch, base, from, uncommitted, ignored, submodules } = event.data;
      const missing = [
        [uncommitted, "changed paths that were not committed"],
        [ignored, "ignored paths"],
        [submodules, "submodules"],
      ] as const;
      const lacks = missing.flatMap(([{ count }, what]) => (count === 0 ? [] : [`${count} ${what}`]));
      const without = lacks.length === 0 ? "" : `, without ${lacks.join(", ")}`;
      const at = from === null ? "" : ` of ${from}`;
      return visibleLine(`works in ${path} on ${branch} from ${base.slice(0, 12)}${at}${without}`);
    }
    case "worktree_finish": {
      const { state } = event.data;
      const removed = state === "removed" ? " Its worktree is removed." : "";
      return visibleLine(`ends its work in its worktree. ${describeWork(event.data)}${removed}`);
    }
    case "worktree_remove":
      return visibleLine(`removes the worktree ${event.data.path}, whose work is merged`);
    case "worktree_merge":
      return visibleLine(mergeWords(event.data));
    default:
      return undefined;
  }
}

function mergeWords({
  status,
  sources,
  path,
  branch,
  changed,
  conflicts,
  reason,
}: Event<"worktree_merge">["data"]): string {
  const work = `the work of ${sources.map(({ taskId }) => taskId).join(", ")}`;
  const target = branch ?? path;
  switch (status) {
    case "merged":
      return `merges ${work} into ${target}: ${namedPaths(changed)}`;
    case "conflict":
      return `cannot merge ${work} into ${target}: conflicts in ${namedPaths(conflicts)}`;
    case "denied":
      return `may not merge ${work} into ${target}${reason === undefined ? "" : `: ${reason}`}`;
    case "changed":
      return `did not merge ${work} into ${target}: ${reason ?? "a folder has changed"}`;
  }
}
