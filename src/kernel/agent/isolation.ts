import type { FolderWork, TaskFolder } from "../run/task-folder.ts";
import type { RunContext } from "./run-context.ts";

/**
 * Gives each task of an agent a folder of its own, so that agents that work at the same time do not change each other's
 * files. `worktreeIsolation()` makes one out of worktrees of git.
 *
 * - D1: file tools and sandboxed programs of a task with a folder reach neither the folder for which it stands nor the
 *   folder of another task, by whichever path. A tool whose root is outside `origin` is refused.
 * - D2: a task whose agent has no isolation works in the folder of its parent, if that has one.
 * - D3: a folder starts from the commit at which the caller is: the `HEAD` of the parent's folder, or of the checkout in
 *   which the run was started. Its id is recorded before anything is created.
 * - D4: each creation and each removal is a journaled step (J6). A step that runs again completes what an earlier attempt
 *   has left, and never takes a folder or a branch that it has not made itself.
 * - D5: nothing is forced. No changed, untracked or ignored file is deleted, except an unchanged copy that Reeve made
 *   itself. No branch is deleted whose commits no other branch holds.
 * - D6: what stays after the end of a task is listed by `reeve worktrees`, also if the process ended in between.
 * - D7: the agent and the log of the run learn what the folder lacks: changes that are not committed, ignored files,
 *   submodules.
 * - D8: a fork of a run never works in a folder of the origin. It gets folders of its own, which start from the same base.
 * - D9: a merge is prepared without changing any folder, and executed after an approval. It is executed as it was
 *   approved, or not at all.
 */
export interface Isolation {
  readonly kind: "worktree";
  /**
   * Creates the folder of this task, or finds it again: the steps are recorded, so a replay returns the same folder. Call
   * it before the code uses any file, outside any branch, and pass the result to `ctx.useFolder`. Throws `invalid_argument` if
   * there is no repository, `dependency_missing` without a usable git, `already_exists` if the branch or the path belongs to
   * something else, and `not_found` if the folder was deleted since.
   */
  open(ctx: RunContext): Promise<TaskFolder>;
  /**
   * Records what the task has left in its folder: work that is not committed becomes a commit object, without a change of
   * the folder or its index. Then it removes a folder that has no work (D5). Call it when no program of the task uses the folder any more, and pass the
   * result to `ctx.report({ work })`. A task that fails or is cancelled does not call it: it may be resumed, and its folder is
   * listed (D6).
   */
  finish(ctx: RunContext, folder: TaskFolder): Promise<FolderWork>;
}
