import type { FolderWork, TaskFolder } from "../run/task-folder.ts";
import type { RunContext } from "./run-context.ts";

/**
 * Gives each task of an agent a folder of its own, so that agents that work at the same time do not change each
 * other's files. `worktreeIsolation()` returns an isolation that uses git worktrees.
 *
 * - D1: file tools and sandboxed programs of a task that has a folder cannot reach the original folder or the
 *   folder of another task, by any path. The task cannot use a tool whose root is outside `origin`.
 * - D2: a task whose agent has no isolation works in the folder of its parent task, if the parent has one.
 * - D3: a folder starts from the commit of the caller: the `HEAD` of the parent's folder, or of the checkout in
 *   which the run was started. Its id is recorded before anything is created.
 * - D4: each creation and each removal is a journaled step (J6). A step that runs again completes what an earlier
 *   attempt has left. It never uses a folder or a branch that it has not made itself.
 * - D5: the isolation deletes no work. It deletes no changed, untracked or ignored file, except an unchanged copy
 *   that Reeve made itself, and no branch with commits that are on no other branch.
 * - D6: `reeve worktrees` lists the folders that remain after the end of a task, also those of a process that died.
 * - D7: the agent and the log of the run learn what the folder does not contain: changes that are not committed,
 *   ignored files, submodules.
 * - D8: a fork of a run never works in a folder of the original run. It gets its own folders, which start from the
 *   same commit.
 * - D9: a merge is prepared without a change to any folder. After an approval it is executed exactly as it was
 *   approved, or not at all.
 *
 * @advanced
 */
export interface Isolation {
  readonly kind: "worktree";
  /**
   * Creates the folder of this task, or finds it again: its steps are recorded, so that a replay returns the same
   * folder. Call it before the code uses any file and outside branches, and pass the result to `ctx.useFolder`.
   * Throws `invalid_argument` if there is no repository, `dependency_missing` if there is no usable git,
   * `already_exists` if the branch or the path is used for something else, and `not_found` if the folder was
   * deleted after a first call.
   */
  open(ctx: RunContext): Promise<TaskFolder>;
  /**
   * Records the work that the task leaves in its folder, and removes the folder if there is none (D5). Work that is
   * not committed becomes a commit object; the folder and its index do not change. Call it when no program of the
   * task uses the folder any more, and pass the result to `ctx.report({ work })`. Do not call it in a task that
   * fails or is cancelled: such a task may be resumed, and `reeve worktrees` lists its folder (D6).
   */
  finish(ctx: RunContext, folder: TaskFolder): Promise<FolderWork>;
}
