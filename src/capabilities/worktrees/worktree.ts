import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, lstat, mkdir, readdir, readFile, realpath, rm, rmdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { Fault, type FolderMount, type TaskFolder } from "../../kernel/index.ts";
import { isInside } from "../files/control-references.ts";
import { absent, codeOf } from "../files/error-code.ts";
import {
  borrowedObjects,
  commitOf,
  identityOf,
  isAncestor,
  overlookedIn,
  stateOf,
  type Checkout,
} from "./checkout.ts";
import { git, gitList, gitText } from "./git.ts";
import { packObjects } from "./packed-objects.ts";
import { holdsFiles } from "./snapshot.ts";
import {
  callerOf,
  checkoutOf,
  isIntact,
  repositoryOf,
  snapshotRef,
  treeName,
  type CopiedFile,
  type TreePlan,
  type TreeRecord,
  type TreeRecords,
} from "./tree-records.ts";

/**
 * The last change of each repository by this process. Changes wait for each other, so that they do not compete for
 * git's locks.
 */
const queues = new Map<string, Promise<unknown>>();

/** Runs work that changes a repository, after earlier work on it in this process. */
async function exclusively<Value>(commonDir: string, work: () => Promise<Value>): Promise<Value> {
  const before = queues.get(commonDir) ?? Promise.resolve();
  const own = before.then(work);
  const settled = own.then(
    () => undefined,
    () => undefined,
  );
  queues.set(commonDir, settled);
  try {
    return await own;
  } finally {
    if (queues.get(commonDir) === settled) queues.delete(commonDir);
  }
}

/**
 * Creates a worktree, or completes one that an earlier attempt has begun (D4). It first writes the record of the
 * plan, then creates the branch and an empty worktree, then its files, then the copies. Throws `already_exists` if
 * the branch or the folder exists and no record says that an earlier attempt created it.
 */
export function createTree(
  records: TreeRecords,
  plan: TreePlan,
  options: { readonly copy: readonly string[]; readonly now: number },
): Promise<TreeRecord> {
  return exclusively(plan.commonDir, () => create(records, plan, options));
}

async function create(
  records: TreeRecords,
  plan: TreePlan,
  { copy, now }: Parameters<typeof createTree>[2],
): Promise<TreeRecord> {
  const before = await records.find(plan.path);
  if (before !== undefined && !isSamePlan(before, plan))
    throw taken(plan, `${plan.path} belongs to another task, ${treeName(before)}`);
  if (before !== undefined && before.state !== "creating") return before;
  if (before === undefined) await refuseTaken(plan);
  const record: TreeRecord = before ?? { ...plan, format: 1, state: "creating", createdAt: now, copied: [] };
  if (before === undefined) await records.write(record);
  await addTree(plan);
  const gitDir = await gitDirOf(plan);
  const created: TreeRecord = { ...record, gitDir };
  const checkout = checkoutOf(created);
  // No agent has seen the folder, so that nothing but an earlier attempt can have written these files.
  await git({ ...checkout, isOfAgent: false }, ["reset", "--quiet", "--hard", plan.base]);
  const copied = await copyFiles(created, copy);
  await packObjects(plan.commonDir);
  for (const folder of refFolders(plan)) await mkdir(folder, { recursive: true });
  const ready: TreeRecord = { ...created, copied, state: "ready" };
  await records.write(ready);
  return ready;
}

function isSamePlan(one: TreePlan, other: TreePlan): boolean {
  return (["runId", "taskId", "branch", "base", "commonDir"] as const).every(
    (key) => one[key] === other[key],
  );
}

/** Throws `already_exists` if the branch or the folder exists. */
async function refuseTaken(plan: TreePlan): Promise<void> {
  if ((await commitOf(repositoryOf(plan), `refs/heads/${plan.branch}`)) !== undefined)
    throw taken(plan, `the branch ${plan.branch} exists already in ${plan.commonDir}`);
  if (await exists(plan.path)) throw taken(plan, `${plan.path} exists already`);
}

function taken(plan: TreePlan, reason: string): Fault {
  return new Fault(
    "already_exists",
    `cannot create the worktree of ${treeName(plan)}: ${reason}; look at it with reeve worktrees and remove or rename it`,
    { details: { path: plan.path, branch: plan.branch } },
  );
}

/**
 * Creates the branch and the empty worktree, unless an earlier attempt has done so. Git locks the worktree, so that
 * it is not pruned in this time.
 */
async function addTree(plan: TreePlan): Promise<void> {
  const repository = repositoryOf(plan);
  const { path, branch, base } = plan;
  await mkdir(dirname(path), { recursive: true });
  const known = await registered(plan);
  if (known !== undefined) {
    if (known.branch === `refs/heads/${branch}` && (await exists(join(path, ".git")))) return;
    await dropPartial(plan, known.isLocked);
  }
  const at = await commitOf(repository, `refs/heads/${branch}`);
  if (at !== undefined && at !== base)
    throw taken(plan, `the branch ${branch} is at ${at} and not at ${base}, from which the task starts`);
  const lock = ["--lock", "--reason", lockReason(plan)];
  const name = at === undefined ? ["-b", branch, path, base] : [path, branch];
  await git(repository, ["worktree", "add", "--no-checkout", ...lock, ...name]);
}

function lockReason(plan: TreePlan): string {
  return `Reeve: task ${treeName(plan)} works here`;
}

/**
 * Removes what an attempt has left that ended during `git worktree add`: at most a folder that contains only the
 * file `.git`, and its entry in the repository.
 */
async function dropPartial(plan: TreePlan, isLocked: boolean): Promise<void> {
  const { path } = plan;
  const repository = repositoryOf(plan);
  if (await exists(path)) {
    await rm(join(path, ".git"), { force: true });
    // Fails if there is anything else.
    await rmdir(path);
  }
  if (isLocked) await git(repository, ["worktree", "unlock", path]);
  await git(repository, ["worktree", "remove", path]);
}

interface Registered {
  readonly branch: string | undefined;
  readonly isLocked: boolean;
}

/** Returns what git knows about a worktree by its path. */
async function registered(plan: TreePlan): Promise<Registered | undefined> {
  const text = await gitText(repositoryOf(plan), ["worktree", "list", "--porcelain"]);
  for (const block of text.split("\n\n")) {
    const lines = block.split("\n");
    if (lines[0] !== `worktree ${plan.path}`) continue;
    const branch = lines.find((line) => line.startsWith("branch "))?.slice("branch ".length);
    return { branch, isLocked: lines.some((line) => /^locked(?: |$)/u.test(line)) };
  }
  return undefined;
}

/**
 * Returns the git folder of a worktree, which its file `.git` names. It is read before an agent can change that
 * file.
 */
async function gitDirOf({ path, commonDir }: TreePlan): Promise<string> {
  const text = await readFile(join(path, ".git"), "utf8");
  const gitDir = await realpath(resolve(path, text.replace(/^gitdir: /u, "").trim()));
  if (isInside(gitDir, join(commonDir, "worktrees"))) return gitDir;
  throw new Fault("tool_failed", `the worktree ${path} belongs to ${gitDir} and not to ${commonDir}`);
}

/** Copies ignored files of the caller. Nothing is overwritten. A file that the caller does not have is left out. */
async function copyFiles(record: TreeRecord, paths: readonly string[]): Promise<readonly CopiedFile[]> {
  const copied: CopiedFile[] = [];
  for (const path of paths) {
    const from = await sourceOf(record, path);
    if (from === undefined) continue;
    const { code } = await git(checkoutOf(record), ["check-ignore", "--quiet", "--", path], { answers: [1] });
    if (code !== 0)
      throw new Fault(
        "invalid_argument",
        `invalid copy ${JSON.stringify(path)}: git does not ignore the file, so that a copy would count as work of the agent; commit it, or add it to .gitignore`,
      );
    const to = join(record.path, path);
    await mkdir(dirname(to), { recursive: true });
    await copyFile(from, to, constants.COPYFILE_EXCL).catch((error: unknown) => {
      // An earlier attempt has copied it.
      if (codeOf(error) !== "EEXIST") throw error;
    });
    copied.push({ path, digest: await digestOf(to) });
  }
  return copied;
}

/** Returns the file to copy. `undefined` if the caller does not have it. */
async function sourceOf({ caller }: TreePlan, path: string): Promise<string | undefined> {
  const from = join(caller, path);
  const found = await realpath(from).catch(() => undefined);
  if (found === undefined) return undefined;
  if (!isInside(found, caller) || isInside(found, join(caller, ".git")))
    throw new Fault(
      "invalid_argument",
      `invalid copy ${JSON.stringify(path)}: ${found} is outside ${caller}`,
    );
  if (!(await lstat(found)).isFile())
    throw new Fault(
      "invalid_argument",
      `invalid copy ${JSON.stringify(path)}: ${from} is not a file; name each file`,
    );
  return found;
}

async function digestOf(path: string): Promise<string> {
  return createHash("sha256")
    .update(await readFile(path))
    .digest("hex");
}

/**
 * Throws `not_found` if the folder of a worktree no longer exists, or belongs to another worktree. If the task
 * itself has removed the folder at its end, this is not an error, because a replay no longer uses it.
 */
export async function assertTree(plan: TreePlan, record: TreeRecord | undefined): Promise<TreeRecord> {
  const { path, branch, host } = plan;
  if (record !== undefined && isSamePlan(record, plan)) {
    const hasEnded = record.removed !== undefined && record.state === "finished";
    if (hasEnded || (record.removed === undefined && (await isIntact(record)))) return record;
  }
  throw new Fault(
    "not_found",
    record === undefined
      ? `the worktree ${path} of ${treeName(plan)} is not on this machine; it was made on ${host}: resume the run there`
      : `the worktree ${path} of ${treeName(plan)} was deleted or replaced; what was committed is at the branch ${branch}: restore it with reeve worktrees restore ${treeName(plan)}, and resume the run`,
    { details: { path, branch, host } },
  );
}

/**
 * Creates the deleted folder of a worktree again, with the content of its branch and its snapshot. Throws
 * `already_exists` if something exists at its path, and `not_found` if the branch no longer exists either.
 */
export function restoreTree(records: TreeRecords, record: TreeRecord): Promise<TreeRecord> {
  return exclusively(record.commonDir, async () => {
    if (await isIntact(record)) return record;
    if (await exists(record.path))
      throw new Fault(
        "already_exists",
        `the worktree ${treeName(record)} cannot be restored: something else is at ${record.path}; move it away`,
      );
    const { removed: _removed, ...plan } = record;
    if ((await commitOf(repositoryOf(plan), `refs/heads/${plan.branch}`)) === undefined)
      throw new Fault(
        "not_found",
        `the worktree ${treeName(plan)} cannot be restored: the branch ${plan.branch} is gone`,
      );
    const known = await registered(plan);
    if (known !== undefined) await dropPartial(plan, known.isLocked);
    const lock = ["--lock", "--reason", lockReason(plan)];
    await git(repositoryOf(plan), ["worktree", "add", ...lock, plan.path, plan.branch]);
    const restored: TreeRecord = { ...plan, gitDir: await gitDirOf(plan) };
    await restoreFiles(restored);
    await records.write(restored);
    return restored;
  });
}

/** Restores the files of the snapshot as uncommitted changes, unless the branch has new commits. */
async function restoreFiles(record: TreeRecord): Promise<void> {
  const checkout = checkoutOf(record);
  const snapshot = await commitOf(checkout, snapshotRef(record));
  if (snapshot === undefined || !(await isAncestor(checkout, "HEAD", snapshot))) return;
  await git(checkout, ["read-tree", "-m", "-u", "HEAD", snapshot]);
  await git(checkout, ["reset", "--quiet"]);
}

/** Returns the folders of the references that only this worktree writes. */
function refFolders({ commonDir, branch }: TreePlan): readonly string[] {
  const folder = dirname(`refs/heads/${branch}`);
  return [join(commonDir, folder), join(commonDir, "logs", folder)];
}

/**
 * Removes links, pipes and similar files from the files of git that the task may write. Git itself creates none
 * there. It would write through them to other files of the user, or wait for them forever.
 */
export async function removeLinks(record: TreeRecord): Promise<void> {
  const { gitDir } = checkoutOf(record);
  for (const folder of [gitDir, ...refFolders(record)]) {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(absent);
    for (const entry of entries ?? [])
      if (!entry.isFile() && !entry.isDirectory())
        await rm(join(entry.parentPath, entry.name), { force: true });
  }
}

/**
 * Returns the folder of a task in its worktree, with the mounts for a sandbox. The task can read the settings and
 * the history of the repository, and write its own git folder, its own branch and new objects. It cannot change the
 * history, other branches and the settings.
 */
export async function folderOf(record: TreeRecord, notes: string): Promise<TaskFolder> {
  const { runId, taskId, path, origin, branch, base, commonDir, gitDir = "" } = record;
  const objects = join(commonDir, "objects");
  const mounts: FolderMount[] = [
    ...(await borrowedObjects(commonDir, readIfPresent)).map(
      (each) => ({ path: each, access: "read" }) as const,
    ),
    { path: commonDir, access: "read" },
    ...[gitDir, objects, ...refFolders(record)].map((each) => ({ path: each, access: "write" }) as const),
    ...["pack", "info"].map((each) => ({ path: join(objects, each), access: "read" }) as const),
  ];
  for (const { path: each } of mounts) await mkdir(each, { recursive: true });
  // Without these settings, git would try to pack the objects of the repository.
  const settings = ["gc.auto", "maintenance.auto"].flatMap((key, index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, key === "gc.auto" ? "0" : "false"],
  ]);
  const env = {
    ...(await identityOf(callerOf(record))),
    ...Object.fromEntries(settings),
    GIT_CONFIG_COUNT: "2",
  };
  return { runId, taskId, path, origin, branch, base, mounts, env, notes };
}

/** Gives a worktree whose task has ended to the user, who may then remove or prune it with git. */
export async function releaseTree(record: TreeRecord): Promise<void> {
  const known = await registered(record);
  if (known?.isLocked === true) await git(repositoryOf(record), ["worktree", "unlock", record.path]);
}

/**
 * Removes a worktree whose work is in `commit` (D5). If it must be kept, returns the reason: files that are not in
 * the commit, or a refusal of git. With `ignored`, ignored files are deleted. The branch and the record are kept
 * until another branch contains the work.
 */
export function removeTree(
  records: TreeRecords,
  record: TreeRecord,
  options: { readonly commit: string; readonly now: number; readonly ignored?: boolean },
): Promise<string | undefined> {
  return exclusively(record.commonDir, () => remove(records, record, options));
}

async function remove(
  records: TreeRecords,
  record: TreeRecord,
  { commit, now, ignored = false }: Parameters<typeof removeTree>[2],
): Promise<string | undefined> {
  const { path } = record;
  const repository = repositoryOf(record);
  const known = await registered(record);
  const isThere = record.removed === undefined && (await exists(path));
  if (isThere) {
    if (known === undefined || !(await isIntact(record)))
      return `${path} is no longer a worktree of ${record.commonDir}`;
    await removeLinks(record);
    const reason = await whyKept(record, commit, ignored);
    if (reason !== undefined) return reason;
    await settleAt(record, commit);
    const unheld = await hold(record, commit);
    if (unheld !== undefined) return unheld;
    for (const each of record.copied) await rm(join(path, each.path), { force: true });
  }
  if (known !== undefined) {
    if (known.isLocked) await git(repository, ["worktree", "unlock", path]);
    const { code, problem } = await git(repository, ["worktree", "remove", path], { answers: [1, 128] });
    if (code !== 0) return problem.trim().replace(/^fatal: /u, "");
  }
  await records.write({ ...record, removed: { commit, at: now, branch: "kept" } });
  if (await dropBranch(record))
    await records.write({ ...record, removed: { commit, at: now, branch: "gone" } });
  return undefined;
}

function readIfPresent(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(absent);
}

/** Returns why files of a worktree would be lost. `undefined` if none would. */
async function whyKept(record: TreeRecord, commit: string, ignored: boolean): Promise<string | undefined> {
  const checkout = checkoutOf(record);
  const state = await stateOf(checkout);
  const own = ignored ? [] : await ownIgnored(record, state.ignored);
  if (own.length > 0) return `it has ignored files: ${listed(own)}`;
  const { head } = state;
  if (head !== commit && !(await isAncestor(checkout, head, commit)))
    return `its branch has commits that ${commit} does not have`;
  if (head === commit && state.uncommitted.length > 0)
    return `it has changes that are not committed: ${listed(state.uncommitted)}`;
  const overlooked = await overlookedIn(checkout);
  if (overlooked.length > 0)
    return `it has files whose changes git does not report (submodules, or marks of git update-index): ${listed(overlooked)}`;
  if (!(await holdsFiles(record, commit))) return `its files have changed since ${commit}`;
  return undefined;
}

/** Ignored files and folders of a worktree, without the unchanged copies that were made on purpose. */
async function ownIgnored(record: TreeRecord, ignored: readonly string[]): Promise<readonly string[]> {
  const unchanged = new Set<string>();
  for (const { path, digest } of record.copied)
    if ((await digestOf(join(record.path, path)).catch(absent)) === digest) unchanged.add(path);
  const own: string[] = [];
  for (const each of ignored) {
    // An ignored folder is listed as a whole, also if it contains nothing but copies.
    const files = each.endsWith("/") ? await ignoredIn(record, each) : [each];
    if (files.some((file) => !unchanged.has(file))) own.push(each);
  }
  return own;
}

async function ignoredIn(record: TreeRecord, folder: string): Promise<readonly string[]> {
  const files = await gitList(checkoutOf(record), [
    "ls-files",
    "-z",
    "--others",
    "--ignored",
    "--exclude-standard",
    "--",
    `:(literal)${folder.slice(0, -1)}`,
  ]);
  // A folder into which git does not look, such as a repository, counts as a file of its own.
  return files.length === 0 ? [folder] : files;
}

/**
 * Moves the branch to the commit and makes the index equal to it, so that git sees no change. The files are already
 * those of the commit. An agent may have set its `HEAD` to a branch of the user, or made its branch an alias of
 * one; such a branch is not moved.
 */
async function settleAt(record: TreeRecord, commit: string): Promise<void> {
  const checkout = checkoutOf(record);
  const head = (await commitOf(checkout, "HEAD")) ?? "";
  if (head === commit) return;
  const own = `refs/heads/${record.branch}`;
  const isOwn = (await gitText(checkout, ["symbolic-ref", "--quiet", "HEAD"], { answers: [1] })) === own;
  const move = ["update-ref", "--no-deref", "-m", "Reeve: keep the work", isOwn ? own : "HEAD"];
  await git(checkout, [...move, commit, head]);
  await git(checkout, ["read-tree", commit]);
  await git(checkout, ["update-index", "-q", "--refresh"], { answers: [1] });
}

/**
 * Keeps a commit that no branch contains, for example because `HEAD` was on no branch. Returns the reason if this
 * is not possible.
 */
async function hold(record: TreeRecord, commit: string): Promise<string | undefined> {
  const place = repositoryOf(record);
  if ((await holdersOf(place, commit)).length > 0) return undefined;
  const ref = snapshotRef(record);
  const snapshot = await commitOf(place, ref);
  if (snapshot !== undefined && !(await isAncestor(place, snapshot, commit)))
    return `no branch has its commit ${commit}: make one with git branch NAME ${commit}`;
  await git(place, ["update-ref", ref, commit]);
  return undefined;
}

/**
 * Deletes the branch and the snapshot of a removed worktree if another branch contains their commits. Returns
 * whether both are deleted.
 */
export async function dropBranch(record: TreeRecord): Promise<boolean> {
  const place = repositoryOf(record);
  const own = [`refs/heads/${record.branch}`, snapshotRef(record)] as const;
  const [branch, snapshot] = [await commitOf(place, own[0]), await commitOf(place, own[1])];
  const isHeld = async (commit: string): Promise<boolean> =>
    (await holdersOf(place, commit)).some((each) => !own.includes(each)) || isAtCaller(record, commit);
  const keepsBranch = branch !== undefined && !(await isHeld(branch));
  const keepsSnapshot =
    snapshot !== undefined &&
    !(keepsBranch && (await isAncestor(place, snapshot, branch))) &&
    !(await isHeld(snapshot));
  // Without --no-deref, git would delete the branch of which the agent has made its own a name.
  const drop = (ref: string, at: string): Promise<unknown> =>
    git(place, ["update-ref", "--no-deref", "-d", ref, at]);
  if (branch !== undefined && !keepsBranch) await drop(own[0], branch);
  if (snapshot !== undefined && !keepsSnapshot) await drop(own[1], snapshot);
  return !keepsBranch && !keepsSnapshot;
}

/** Returns the branches and tags that contain a commit. */
async function holdersOf(place: Checkout, commit: string): Promise<readonly string[]> {
  const text = await gitText(place, ["for-each-ref", "--format=%(refname)", "--contains", commit]);
  return text.split("\n").filter((each) => each !== "");
}

/** Whether the `HEAD` of the caller, which may be on no branch, contains a commit. */
async function isAtCaller(record: TreeRecord, commit: string): Promise<boolean> {
  if (!(await exists(record.callerGitDir))) return false;
  const head = await commitOf(callerOf(record), "HEAD");
  return head !== undefined && isAncestor(repositoryOf(record), commit, head);
}

function listed(paths: readonly string[]): string {
  const shown = paths.slice(0, 10).join(", ");
  return paths.length > 10 ? `${shown} and ${paths.length - 10} more` : shown;
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(absent)) !== undefined;
}
