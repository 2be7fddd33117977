import type { RunId, TaskId } from "../base/identity.ts";

/** A path outside the folder of a task that the programs of the task may use, mounted at the same path in a sandbox. */
export interface FolderMount {
  /** Real absolute path. It exists when the folder is opened. */
  readonly path: string;
  /** Whether programs may change it. */
  readonly access: "read" | "write";
}

/**
 * A folder in which a task works instead of the folder for which its tools were made (`Isolation`). It is JSON, and
 * the record of a child contains the folder that the child inherits.
 *
 * @advanced
 */
export interface TaskFolder {
  /** The run for which the folder was made. D8: a fork of that run has its own folder. */
  readonly runId: RunId;
  /** The task for which the folder was made. It is this task, or the nearest ancestor with its own folder. */
  readonly taskId: TaskId;
  /** Real absolute path. */
  readonly path: string;
  /**
   * Real absolute path of the original folder, such as the checkout of the person. A tool whose root is `origin`,
   * or inside it, works at the same place below `path`.
   */
  readonly origin: string;
  /** Branch of the folder, such as `reeve/run_7/t1/coder`. */
  readonly branch: string;
  /** Commit from which the branch started. */
  readonly base: string;
  /** Paths that a sandbox must mount besides `path`, in this order. All other parts of `origin` stay invisible. */
  readonly mounts: readonly FolderMount[];
  /** Environment variables for the programs of the task. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * D7: sentences for the agent's prompt. They say that the agent works in this folder, and which parts of `origin`
   * are missing.
   */
  readonly notes: string;
}

/** Paths, cut to the first ones. */
export interface SomePaths {
  /** How many there are. */
  readonly count: number;
  /** At most the first 50 paths, relative to the folder, in order. */
  readonly paths: readonly string[];
}

/** A file that two tasks have changed, each in its own folder. */
export interface WorkOverlap {
  /** Path relative to both folders. */
  readonly path: string;
  /** The other task. */
  readonly taskId: TaskId;
  /** The branch of the other task. */
  readonly branch: string;
}

/** The work that a task has left in its folder at its end. It is JSON and part of the outcome of the task. @advanced */
export interface FolderWork {
  /** The path of the folder. */
  readonly path: string;
  readonly branch: string;
  readonly base: string;
  /**
   * The commit that contains all of the work: the last commit of the branch, or a snapshot if files were not
   * committed.
   */
  readonly commit: string;
  /** Files that differ between `base` and `commit`. */
  readonly changed: SomePaths;
  /** Files in `commit` that the task had not committed itself. */
  readonly uncommitted: SomePaths;
  /**
   * Files that other tasks of the run have changed as well, according to the work that is known so far. At most 50.
   */
  readonly overlaps: readonly WorkOverlap[];
  /** Whether the folder still exists. A folder without work is removed. */
  readonly state: "kept" | "removed";
  /** Why a folder without work was not removed, such as ignored files in it. Absent otherwise. */
  readonly reason?: string;
}

/** How a merge of the work of tasks ended. */
export type FolderMergeStatus =
  /** D9: the folder of the caller contains the work. */
  | "merged"
  /** The prepared merge has conflicts. Nothing was changed. */
  | "conflict"
  /** A person did not approve the merge. */
  | "denied"
  /** D9: a folder or the branch of the caller has changed since the merge was prepared. */
  | "changed";

/** A merge of the work of tasks into the folder of the task that requested it. It is JSON. */
export interface FolderMerge {
  /** Folder of the calling task: its own, or the checkout in which the run was started. */
  readonly path: string;
  /** Branch of the calling task. `null` if its `HEAD` is not on a branch. */
  readonly branch: string | null;
  /** Commit in the folder of the calling task for which the merge was prepared. */
  readonly head: string;
  /** The branches to merge, in order, with the commits that contain their work. */
  readonly sources: readonly { readonly taskId: TaskId; readonly branch: string; readonly commit: string }[];
  /** The commit that results from the merge. `null` if there are conflicts. */
  readonly commit: string | null;
  /** Files that the merge changes in the folder of the caller. */
  readonly changed: SomePaths;
  /** Files in conflict. */
  readonly conflicts: SomePaths;
}

/**
 * D9: the question that a person is asked before a merge. It is the `input` of an approval request of the kind
 * `merge`.
 */
export interface MergeQuestion {
  /** The question in words. */
  readonly message: string;
  readonly merge: FolderMerge;
  /** The changes that the merge makes in the folder of the caller, as a unified diff. */
  readonly diff: string;
  /** Present if the diff was too long, so that a part of it is missing. */
  readonly isCut?: true;
}
