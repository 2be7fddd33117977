import { randomUUID } from "node:crypto";
import { lstat, mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { Fault, type AgentId, type FolderWork, type RunId, type TaskId } from "../../kernel/index.ts";
import { absent, codeOf } from "../files/error-code.ts";
import { reeveHome } from "../files/reeve-home.ts";
import type { Checkout } from "./checkout.ts";

/** An ignored file that was copied into a worktree on purpose. */
export interface CopiedFile {
  /** Relative to the worktree. */
  readonly path: string;
  /** SHA-256 of the content. It shows whether the copy is unchanged. */
  readonly digest: string;
}

/** The plan for a worktree before any part of it exists. It is JSON, because a step of the task records it. */
export interface TreePlan {
  readonly runId: RunId;
  readonly taskId: TaskId;
  readonly agentId: AgentId;
  /** Name of the machine. */
  readonly host: string;
  /** The checkout of the person, for which the tools of the agents were made. */
  readonly origin: string;
  /**
   * The checkout of the calling task: `origin`, or the worktree of the parent. Its `HEAD` is the base, and work is
   * merged into it.
   */
  readonly caller: string;
  readonly callerGitDir: string;
  readonly commonDir: string;
  readonly path: string;
  readonly branch: string;
  readonly base: string;
  /** Branch of the caller. `null` if its `HEAD` is at no branch. */
  readonly from: string | null;
}

/**
 * Facts about a worktree on this machine. The record is written before the worktree is created, so that every
 * worktree is listed (D6). It is kept after the folder was removed, so that a replay of the task does not report
 * the folder as lost.
 */
export interface TreeRecord extends TreePlan {
  readonly format: 1;
  /**
   * `creating`: no agent has seen the folder. `ready`: a task works in it, or has been stopped. `finished`: the task has
   * recorded its work.
   */
  readonly state: "creating" | "ready" | "finished";
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** The git folder of the worktree. Absent before git has created it. */
  readonly gitDir?: string;
  readonly copied: readonly CopiedFile[];
  /** The work that the task has left. Present in the state `finished`. */
  readonly work?: FolderWork;
  /**
   * Present when the folder was removed. It contains the commit with the work, the time, and whether the branch
   * still exists because no other branch contains the work.
   */
  readonly removed?: { readonly commit: string; readonly at: number; readonly branch: "kept" | "gone" };
}

/**
 * How long a record is kept after its worktree was removed, in milliseconds, so that a replay that has waited finds
 * it.
 */
const keptMs = 7 * 86_400_000;

/** Returns the folder of worktrees if the options name none. */
export function defaultTreesFolder(): string {
  return join(reeveHome(), "worktrees");
}

/** Returns the reference that keeps a snapshot of work which no branch contains. */
export function snapshotRef({ runId, taskId }: Pick<TreePlan, "runId" | "taskId">): string {
  return `refs/reeve/${runId}/${taskId}`;
}

/** How people and commands name a worktree. */
export function treeName({ runId, taskId }: Pick<TreePlan, "runId" | "taskId">): string {
  return `${runId}/${taskId}`;
}

/** Returns the checkout of a worktree. Its file `.git` is not read, because the agent may have replaced it. */
export function checkoutOf({ path, gitDir, commonDir }: TreeRecord): Checkout {
  if (gitDir === undefined)
    throw new Fault(
      "not_found",
      `the worktree ${path} was never completed; remove it with reeve worktrees remove`,
    );
  return { path, gitDir, commonDir, isOfAgent: true };
}

/** Returns the checkout of the caller of a worktree. */
export function callerOf({ caller, callerGitDir, commonDir }: TreePlan): Checkout {
  return { path: caller, gitDir: callerGitDir, commonDir };
}

/**
 * Returns the repository of a worktree, for commands that need no checkout. It is not the checkout of the caller,
 * which may no longer exist.
 */
export function repositoryOf({ commonDir }: TreePlan): Checkout {
  return { path: commonDir, gitDir: commonDir, commonDir, isOfAgent: true };
}

/** Whether the folder exists and belongs to the worktree. */
export async function isIntact({ path, gitDir }: TreeRecord): Promise<boolean> {
  if (gitDir === undefined) return false;
  const text = await readFile(join(path, ".git"), "utf8").catch(absent);
  const back = await readFile(join(gitDir, "gitdir"), "utf8").catch(absent);
  const common = await readFile(join(gitDir, "commondir"), "utf8").catch(absent);
  return (
    text?.trim() === `gitdir: ${gitDir}` &&
    back !== undefined &&
    resolve(gitDir, back.trim()) === join(path, ".git") &&
    common !== undefined &&
    resolve(gitDir, common.trim()) === resolve(gitDir, "..", "..")
  );
}

/** Whether nothing is at the path of a worktree. */
export async function isGone({ path }: TreePlan): Promise<boolean> {
  return (await lstat(path).catch(absent)) === undefined;
}

/** The records of the worktrees of this machine: `FOLDER/REPOSITORY/RUN-TASK.json`, beside the folders. */
export class TreeRecords {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Returns the record of a worktree by its path, or `undefined` if there is none. */
  async find(path: string): Promise<TreeRecord | undefined> {
    try {
      return readRecord(fileOf(path), await readFile(fileOf(path), "utf8"));
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      throw error;
    }
  }

  /** Writes a record. If the process dies here, either the old record or the new one exists. */
  async write(record: TreeRecord): Promise<void> {
    const file = fileOf(record.path);
    await mkdir(dirname(file), { recursive: true });
    const draft = `${file}.${randomUUID()}`;
    const handle = await open(draft, "wx", 0o600);
    try {
      await handle.writeFile(`${JSON.stringify(record, null, 2)}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  }

  /** Returns all records, the oldest first. `onProblem` receives the fault of each file that cannot be read. */
  list(onProblem: (fault: Fault) => void = () => undefined): Promise<readonly TreeRecord[]> {
    return this.#read(() => true, onProblem);
  }

  /** Returns the records of a run. Files of other runs are not read. */
  ofRun(runId: RunId): Promise<readonly TreeRecord[]> {
    return this.#read(
      (name) => name.startsWith(`${runId}-`),
      () => undefined,
    );
  }

  /** Deletes records of worktrees of which nothing has existed for a week. */
  async forgetOld(now: number): Promise<void> {
    for (const { path, removed } of await this.list())
      if (removed?.branch === "gone" && removed.at < now - keptMs) await rm(fileOf(path), { force: true });
  }

  async #read(
    isWanted: (name: string) => boolean,
    onProblem: (fault: Fault) => void,
  ): Promise<readonly TreeRecord[]> {
    const found: TreeRecord[] = [];
    for (const repository of await entriesOf(this.folder))
      for (const name of await entriesOf(join(this.folder, repository))) {
        if (!name.endsWith(".json") || !isWanted(name)) continue;
        const path = join(this.folder, repository, name.slice(0, -".json".length));
        const record = await this.find(path).catch((error: unknown) => onProblem(Fault.from(error)));
        if (record !== undefined) found.push(record);
      }
    return found.toSorted((one, other) => one.createdAt - other.createdAt);
  }
}

function fileOf(path: string): string {
  return `${path}.json`;
}

function readRecord(file: string, text: string): TreeRecord {
  try {
    const value = JSON.parse(text) as TreeRecord;
    if (value.format === 1 && basename(value.path) === basename(file, ".json")) return value;
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
  }
  throw new Fault(
    "invalid_argument",
    `${file} is no record of a worktree of this version of Reeve: use the version that wrote it, or move the file away`,
  );
}

async function entriesOf(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return [];
    throw error;
  }
}
