import type { WorkOverlap } from "../../kernel/index.ts";
import { randomUUID } from "node:crypto";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { codeOf } from "../files/error-code.ts";
import { changedBetween, commitOf, identityOf, stateOf, type Checkout } from "./checkout.ts";
import { git, gitText } from "./git.ts";
import {
  checkoutOf,
  isIntact,
  repositoryOf,
  snapshotRef,
  treeName,
  type TreeRecord,
  type TreeRecords,
} from "./tree-records.ts";

/** The work in a worktree at one moment. */
export interface Snapshot {
  /** Last commit of the branch. */
  readonly head: string;
  /** The commit that contains all of the work: `head`, or a new commit on top of it. */
  readonly commit: string;
  /** Files that differ between the base and `commit`. */
  readonly changed: readonly string[];
  /** Files that differ between `head` and `commit`. */
  readonly uncommitted: readonly string[];
}

/**
 * Returns the work in a worktree. Files that are not committed become a commit object that a reference of Reeve keeps. Neither
 * the files, nor the index, nor the branch of the worktree change.
 */
export async function takeSnapshot(record: TreeRecord): Promise<Snapshot> {
  const checkout = checkoutOf(record);
  const { head, branch, uncommitted: dirty } = await stateOf(checkout);
  const commit = dirty.length === 0 ? head : await commitFiles(record, checkout, head);
  // The branch of the task does not have what was committed at another branch, or at none.
  if (commit !== record.base && (commit !== head || branch !== record.branch))
    await git(checkout, ["update-ref", snapshotRef(record), commit]);
  const changed = commit === record.base ? [] : await changedBetween(checkout, record.base, commit);
  const isNew = commit !== head;
  const uncommitted = !isNew
    ? []
    : head === record.base
      ? changed
      : await changedBetween(checkout, head, commit);
  return { head, commit, changed, uncommitted };
}

/** Whether the files of a worktree, without ignored ones, are equal to those of the commit. */
export async function holdsFiles(record: TreeRecord, commit: string): Promise<boolean> {
  const checkout = checkoutOf(record);
  const own = await withIndex(checkout, (env) => writeFiles(checkout, env));
  return own === (await gitText(checkout, ["rev-parse", "--verify", `${commit}^{tree}`]));
}

async function commitFiles(record: TreeRecord, checkout: Checkout, head: string): Promise<string> {
  const identity = await identityOf(checkout);
  const message = (what: string): string => `Reeve: ${what} of ${record.agentId} in ${treeName(record)}`;
  return withIndex(checkout, async (env) => {
    const staged = await stagedTree(checkout, env);
    const files = await writeFiles(checkout, env);
    const known = [files, await gitText(checkout, ["rev-parse", `${head}^{tree}`])];
    if (files === known[1] && (staged === undefined || staged === files)) return head;
    // What is staged and neither committed nor in a file would otherwise be lost with the index.
    const index =
      staged === undefined || known.includes(staged)
        ? []
        : ["-p", await commitTree(checkout, identity, staged, ["-p", head], message("what is staged"))];
    return commitTree(checkout, identity, files, ["-p", head, ...index], message("work"));
  });
}

async function commitTree(
  checkout: Checkout,
  env: Readonly<Record<string, string>>,
  tree: string,
  parents: readonly string[],
  message: string,
): Promise<string> {
  return (await gitText(checkout, ["commit-tree", tree, ...parents, "-m", message], { env })).trim();
}

/**
 * Returns the tree of the staged files. `undefined` in the middle of a merge, when the index contains several
 * versions of a file.
 */
async function stagedTree(
  checkout: Checkout,
  env: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const { code, text } = await git(checkout, ["write-tree"], { env, answers: [128] });
  return code === 0 ? text.trim() : undefined;
}

/** Adds all files to a copy of the index and returns their tree. */
async function writeFiles(checkout: Checkout, env: Readonly<Record<string, string>>): Promise<string> {
  await git(checkout, ["add", "--all", "--", ".", ...(await withoutRepositories(checkout))], { env });
  return gitText(checkout, ["write-tree"], { env });
}

/**
 * Returns patterns that exclude the submodules. Otherwise git would ask each one for its state, and use settings
 * that an agent may have written there. The commit keeps the submodules as they are in the index.
 */
async function withoutRepositories(checkout: Checkout): Promise<readonly string[]> {
  const { text } = await git(checkout, ["ls-files", "--stage", "-z"]);
  return text
    .split("\0")
    .filter((each) => each.startsWith("160000 "))
    .map((each) => `:(exclude,literal)${each.slice(each.indexOf("\t") + 1)}`);
}

/** Runs work on a copy of the index of a checkout. */
async function withIndex<Value>(
  { gitDir }: Checkout,
  work: (env: Readonly<Record<string, string>>) => Promise<Value>,
): Promise<Value> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-index-"));
  try {
    const file = join(folder, randomUUID());
    await copyFile(join(gitDir, "index"), file).catch((error: unknown) => {
      // A worktree without an index has no files yet.
      if (codeOf(error) !== "ENOENT") throw error;
    });
    return await work({ GIT_INDEX_FILE: file });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Maximum number of overlaps that are recorded. */
const maxOverlaps = 50;

/** Returns the files that other tasks with the same caller have also changed, according to their work so far. */
export async function overlapsOf(
  records: TreeRecords,
  record: TreeRecord,
  changed: readonly string[],
): Promise<readonly WorkOverlap[]> {
  const own = new Set(changed);
  const found: WorkOverlap[] = [];
  for (const other of await records.ofRun(record.runId)) {
    if (other.path === record.path || other.caller !== record.caller) continue;
    const { taskId, branch } = other;
    for (const path of await changedNow(other)) if (own.has(path)) found.push({ path, taskId, branch });
  }
  return found.toSorted((one, two) => (one.path < two.path ? -1 : 1)).slice(0, maxOverlaps);
}

/** Returns the files that currently differ from the base of a worktree: those of its commits, and uncommitted ones. */
export async function changedNow(record: TreeRecord): Promise<readonly string[]> {
  const { work, base, removed } = record;
  const known = removed?.commit ?? work?.commit;
  if (known === undefined && !(await isIntact(record))) return [];
  if (known === undefined) {
    const checkout = checkoutOf(record);
    const { head, uncommitted } = await stateOf(checkout);
    return [...new Set([...(await changedBetween(checkout, base, head)), ...uncommitted])];
  }
  const repository = repositoryOf(record);
  return (await commitOf(repository, known)) === undefined ? [] : changedBetween(repository, base, known);
}
