import type { FolderMerge, FolderMergeStatus, TaskId } from "../../kernel/index.ts";
import { changedBetween, commitOf, isAncestor, somePaths, stateOf, type Checkout } from "./checkout.ts";
import { git, gitText } from "./git.ts";

/** Work that is to be merged. */
export interface MergeSource {
  readonly taskId: TaskId;
  readonly branch: string;
  readonly commit: string;
  /** First line of the commit that merges it. */
  readonly title: string;
}

/**
 * A prepared merge that has changed nothing yet. It contains everything that is needed to create the same commits
 * again. It is JSON, because a step records it.
 */
export interface PreparedMerge {
  readonly merge: FolderMerge;
  readonly sources: readonly MergeSource[];
  /** Name and email address for the commits. */
  readonly identity: Readonly<Record<string, string>>;
  /** Epoch milliseconds: the date of the commits. */
  readonly at: number;
  /** Uncommitted changes in the folder of the caller, in files that the merge changes. */
  readonly blocked: readonly string[];
  /** The changes of the merge, as a unified diff. Empty if there are conflicts. */
  readonly diff: string;
  /** Present if the diff was cut. */
  readonly isCut?: true;
}

/** Maximum length of a diff that a person is shown. */
const maxDiff = 200_000;

/**
 * Prepares a merge of several branches, one after the other, without changing any folder (D9). Work that the caller
 * already has is left out.
 */
export async function prepareMerge(
  target: Checkout,
  sources: readonly MergeSource[],
  { identity, at }: Pick<PreparedMerge, "identity" | "at">,
): Promise<PreparedMerge> {
  const { head, branch, uncommitted } = await stateOf(target);
  const merged = await mergeCommits(target, head, sources, { identity, at });
  const isMerged = "commit" in merged;
  const changed = isMerged ? await changedBetween(target, head, merged.commit) : [];
  const diff = isMerged ? await diffText(target, head, merged.commit) : "";
  return {
    merge: {
      path: target.path,
      branch,
      head,
      sources: sources.map(({ title: _title, ...source }) => source),
      commit: isMerged ? merged.commit : null,
      changed: somePaths(changed),
      conflicts: somePaths(isMerged ? [] : merged.conflicts),
    },
    sources,
    identity,
    at,
    blocked: changed.filter((path) => uncommitted.some((each) => path === each || isBelow(path, each))),
    diff: diff.slice(0, maxDiff).toWellFormed(),
    ...(diff.length > maxDiff && { isCut: true }),
  };
}

function isBelow(path: string, folder: string): boolean {
  return folder.endsWith("/") && path.startsWith(folder);
}

function diffText(checkout: Checkout, from: string, to: string): Promise<string> {
  // The settings of the user must not change the form in which the diff is read, nor hide a part of it.
  const form = ["--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"];
  const submodules = ["--submodule=short", "--ignore-submodules=none"];
  return gitText(checkout, ["diff", ...form, ...submodules, from, to, "--"]);
}

/** Creates the commits of a merge. The same input gives the same commits, so that a repeated step changes nothing. */
async function mergeCommits(
  target: Checkout,
  head: string,
  sources: readonly MergeSource[],
  { identity, at }: Pick<PreparedMerge, "identity" | "at">,
): Promise<{ readonly commit: string } | { readonly conflicts: readonly string[] }> {
  const date = `${Math.floor(at / 1000)} +0000`;
  const env = { ...identity, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date };
  let commit = head;
  for (const source of sources) {
    if (await isAncestor(target, source.commit, commit)) continue;
    const { code, text } = await git(
      target,
      ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", commit, source.commit],
      { answers: [1] },
    );
    const [tree = "", ...conflicts] = text.split("\0").filter((each) => each !== "");
    if (code === 1) return { conflicts: [...new Set(conflicts)] };
    const parents = ["-p", commit, "-p", source.commit];
    commit = await gitText(target, ["commit-tree", tree, ...parents, "-m", source.title], { env });
  }
  return { commit };
}

/** How the execution of a merge ended. */
export interface MergeEnd {
  readonly status: Extract<FolderMergeStatus, "merged" | "changed">;
  readonly reason?: string;
}

/**
 * D9: executes a prepared merge, exactly as it was prepared. Git moves the branch of the caller forward, and refuses to do so if it would
 * lose a change of a file. Executing it again has no effect.
 */
export async function executeMerge(target: Checkout, prepared: PreparedMerge): Promise<MergeEnd> {
  const { merge, sources } = prepared;
  const { head, branch } = await stateOf(target);
  const known = merge.commit === null ? undefined : await commitOf(target, merge.commit);
  if (known !== undefined && (await isAncestor(target, known, head))) return { status: "merged" };
  if (head !== merge.head || branch !== merge.branch)
    return {
      status: "changed",
      reason: `${target.path} is at ${head.slice(0, 12)} (${branch ?? "no branch"}) and no longer at ${merge.head.slice(0, 12)} (${merge.branch ?? "no branch"})`,
    };
  // Git deletes commits that no branch has after a while.
  const made = known === undefined ? await mergeCommits(target, head, sources, prepared) : { commit: known };
  if (!("commit" in made) || made.commit !== merge.commit)
    return { status: "changed", reason: "the same merge would give another result now" };
  const { code, problem } = await git(
    target,
    ["merge", "--ff-only", "--no-overwrite-ignore", "--quiet", made.commit],
    { answers: [1, 2, 128] },
  );
  if (code === 0) return { status: "merged" };
  return { status: "changed", reason: `git refused: ${problem.trim().replace(/^(?:error|fatal): /u, "")}` };
}
