import {
  Fault,
  type AgentId,
  type RunId,
  type SomePaths,
  type TaskId,
  type WorkOverlap,
} from "../../kernel/index.ts";
import { changedBetween, commitOf, somePaths, stateOf } from "./checkout.ts";
import { takeSnapshot } from "./snapshot.ts";
import {
  checkoutOf,
  defaultTreesFolder,
  isGone,
  isIntact,
  repositoryOf,
  snapshotRef,
  TreeRecords,
  treeName,
  type TreeRecord,
} from "./tree-records.ts";
import { createTree, dropBranch, removeTree, restoreTree } from "./worktree.ts";

/**
 * State of the rest of a worktree. `creating`: the process ended while it created the worktree. `open`: a task
 * works in it, or was stopped. `finished`: its task has ended. `missing`: the folder was deleted, but not by Reeve.
 * `branch`: the folder was removed, and no other branch contains the work.
 */
type LeftoverState = "creating" | "open" | "finished" | "missing" | "branch";

/** A worktree of which at least a part still exists. It is JSON. */
export interface Leftover {
  /** The run and the task, such as `run_7/t1`. It is the name for commands. */
  readonly name: string;
  readonly runId: RunId;
  readonly taskId: TaskId;
  readonly agentId: AgentId;
  readonly state: LeftoverState;
  /** Name of the machine. */
  readonly host: string;
  /** The checkout of the person. */
  readonly origin: string;
  readonly path: string;
  readonly branch: string;
  readonly base: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** The commit with the committed work. `null` if there is none. */
  readonly commit: string | null;
  /** Files that differ from the base. */
  readonly changed: SomePaths;
  /** Files that are in no commit. */
  readonly uncommitted: SomePaths;
  /** Ignored files and folders, among them copies that were made on purpose. */
  readonly ignored: SomePaths;
  /** Files that other tasks of the run had changed as well when the task ended. */
  readonly overlaps: readonly WorkOverlap[];
  /**
   * Why nothing is known about the files of the worktree, for example because the repository was moved. Absent if
   * everything is known.
   */
  readonly problem?: string;
}

/** Options of `Leftovers.remove`. */
export interface RemoveOptions {
  /** Whether uncommitted files first become a commit on the branch. Default: `false`. */
  readonly commit?: boolean;
  /** Whether ignored files are deleted. Default: `false`. */
  readonly ignored?: boolean;
}

/** What became of the parts of a worktree. */
export interface Removed {
  readonly name: string;
  /** `kept`: no other branch has its commits. */
  readonly branch: "gone" | "kept";
}

/** D6: the worktrees of this machine, in whatever state their runs are. */
export class Leftovers {
  readonly #records: TreeRecords;

  constructor(folder: string = defaultTreesFolder()) {
    this.#records = new TreeRecords(folder);
  }

  /** The folder of the worktrees. */
  get folder(): string {
    return this.#records.folder;
  }

  /**
   * Returns all worktrees of which something still exists, oldest first. `onProblem` receives records that cannot
   * be read.
   */
  async list(onProblem?: (fault: Fault) => void): Promise<readonly Leftover[]> {
    const found: Leftover[] = [];
    for (const record of await this.#records.list(onProblem)) {
      if (record.removed?.branch === "gone") continue;
      const leftover = await leftoverOf(record);
      if (leftover !== undefined) found.push(leftover);
    }
    return found;
  }

  /** Returns a worktree by its name, path or branch. Throws `not_found`. */
  async find(name: string): Promise<Leftover> {
    const leftover = await leftoverOf(await this.#recordOf(name));
    if (leftover === undefined) throw gone(name);
    return leftover;
  }

  /**
   * D5: removes a worktree. It also removes its branch if another branch contains the commits. Throws
   * `permission_denied` if a file would be lost. The caller must have checked that the run of its task has ended.
   */
  async remove(name: string, { commit = false, ignored = false }: RemoveOptions = {}): Promise<Removed> {
    let record = await this.#recordOf(name);
    if (record.state === "creating")
      record = await createTree(this.#records, record, { copy: [], now: record.createdAt });
    const isThere = record.removed === undefined && (await isIntact(record));
    const work = isThere ? await workOf(record, commit) : { commit: record.base };
    const reason = await removeTree(this.#records, record, { ...work, now: Date.now(), ignored });
    if (reason !== undefined)
      throw new Fault(
        "permission_denied",
        `${treeName(record)} was not removed: ${reason}; ${adviceOn(reason)}`,
        {
          details: { name: treeName(record), path: record.path },
        },
      );
    const after = await this.#records.find(record.path);
    return { name: treeName(record), branch: after?.removed?.branch ?? "gone" };
  }

  /** Creates the folder of a worktree again after another program has deleted it, with the content of its branch. */
  async restore(name: string): Promise<Leftover> {
    const restored = await restoreTree(this.#records, await this.#recordOf(name));
    return this.find(treeName(restored));
  }

  async #recordOf(name: string): Promise<TreeRecord> {
    const records = await this.#records.list();
    const found = records.filter((each) => [treeName(each), each.path, each.branch].includes(name));
    const [record] = found;
    if (record !== undefined) return record;
    throw gone(name);
  }
}

function gone(name: string): Fault {
  return new Fault("not_found", `worktree ${JSON.stringify(name)} not found; reeve worktrees lists them`);
}

/** Returns the commit with the work of a worktree that will be removed. */
async function workOf(record: TreeRecord, isCommitted: boolean): Promise<{ readonly commit: string }> {
  if (isCommitted) return { commit: (await takeSnapshot(record)).commit };
  return { commit: (await stateOf(checkoutOf(record))).head };
}

function adviceOn(reason: string): string {
  if (reason.includes("not committed"))
    return "commit them, or use --commit to keep them as a commit of its branch";
  if (reason.includes("ignored files"))
    return "move away what you need, and use --ignored to delete the rest";
  return "look at it first";
}

/** Describes what still exists of a worktree. `undefined` if nothing does. */
async function leftoverOf(record: TreeRecord): Promise<Leftover | undefined> {
  const { runId, taskId, agentId, host, origin, path, branch, base, createdAt, work } = record;
  const none = somePaths([]);
  const known = {
    name: treeName(record),
    runId,
    taskId,
    agentId,
    host,
    origin,
    path,
    branch,
    base,
    createdAt,
    commit: null,
    changed: none,
    uncommitted: none,
    ignored: none,
    overlaps: work?.overlaps ?? [],
  };
  try {
    if (record.removed !== undefined) {
      // Another branch may have the work by now.
      if (await dropBranch(record)) return undefined;
      return { ...known, state: "branch", ...(await branchWork(record)) };
    }
    if (record.state === "creating") return { ...known, state: "creating" };
    if (!(await isIntact(record))) {
      const isReplaced = !(await isGone(record));
      const problem = `something else is at ${path}`;
      return { ...known, state: "missing", ...(await branchWork(record)), ...(isReplaced && { problem }) };
    }
    const checkout = checkoutOf(record);
    const { head, uncommitted, ignored } = await stateOf(checkout);
    const committed = head === base ? [] : await changedBetween(checkout, base, head);
    return {
      ...known,
      state: record.state === "finished" ? "finished" : "open",
      commit: work?.commit ?? head,
      changed: somePaths([...new Set([...committed, ...uncommitted])]),
      uncommitted: somePaths(uncommitted),
      ignored: somePaths(ignored),
    };
  } catch (error) {
    return { ...known, state: "missing", problem: Fault.from(error).message };
  }
}

/** Returns the content of the branch or the snapshot of a worktree whose folder no longer exists. */
async function branchWork(record: TreeRecord): Promise<Pick<Leftover, "commit" | "changed">> {
  const repository = repositoryOf(record);
  const commit =
    (await commitOf(repository, snapshotRef(record))) ??
    (await commitOf(repository, `refs/heads/${record.branch}`)) ??
    null;
  const changed = commit === null ? [] : await changedBetween(repository, record.base, commit);
  return { commit, changed: somePaths(changed) };
}
