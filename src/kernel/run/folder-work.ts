import type { ToolResult } from "../messages/tool-call.ts";
import { withNote } from "../messages/tool-note.ts";
import type { FolderWork, SomePaths } from "./task-folder.ts";

/** Maximum number of paths in a sentence. */
const maxNamed = 20;

/** Lists paths for use in a sentence. A path with characters that could be misread is written as JSON. */
export function namedPaths({ count, paths }: SomePaths): string {
  const named = paths.slice(0, maxNamed).map((path) => (isPlain(path) ? path : JSON.stringify(path)));
  const more = count > named.length ? ` and ${count - named.length} more` : "";
  return `${named.join(", ")}${more}`;
}

function isPlain(path: string): boolean {
  return /^[\w./@+:~-]+$/u.test(path);
}

/** Describes to the caller of a task the work that the task has left in its folder. */
export function describeWork(work: FolderWork): string {
  const { branch, commit, base, changed, overlaps, state, path, reason } = work;
  if (commit === base) {
    const kept =
      state === "kept" ? `; its folder ${path} is kept: ${reason ?? "it could not be removed"}` : "";
    return `It changed no files in its worktree${kept}.`;
  }
  const files = `${changed.count} changed ${changed.count === 1 ? "file" : "files"}: ${namedPaths(changed)}`;
  const shared = Map.groupBy(overlaps, ({ taskId }) => taskId);
  const clashes = [...shared].map(([taskId, each]) => {
    const paths = each.map((overlap) => overlap.path);
    return `${taskId} has changed some of them as well: ${namedPaths({ count: paths.length, paths })}`;
  });
  const merged = `Its work is not merged yet. It is at commit ${commit.slice(0, 12)} of the branch ${branch}, with ${files}`;
  return `${[merged, ...clashes].join(". ")}.`;
}

/**
 * Adds a description of the work that a task has left in its folder to the result of the tool call that started the
 * task.
 */
export function withWork(result: ToolResult, work: FolderWork | undefined): ToolResult {
  if (work === undefined) return result;
  return withNote(result, `[${describeWork(work)}]`);
}
