import { lstat, readdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { Fault, type SomePaths } from "../../kernel/index.ts";
import { absent } from "../files/error-code.ts";
import { git, gitList, type GitPlace } from "./git.ts";

/** A folder that git has checked out: the checkout of a person, or the worktree of a task. All paths are real. */
export interface Checkout extends GitPlace {
  readonly gitDir: string;
  /** The git folder that all worktrees of the repository share. */
  readonly commonDir: string;
}

/** The commit of a checkout, and the changes in it that no commit contains. */
export interface CheckoutState {
  /** The commit at which it is. */
  readonly head: string;
  /** `null` if `HEAD` is at no branch. */
  readonly branch: string | null;
  /** Changed and new files. */
  readonly uncommitted: readonly string[];
  /** Ignored files and folders. */
  readonly ignored: readonly string[];
}

/** Maximum number of paths in a list that is stored. */
const maxPaths = 50;

/** Finds the checkout that contains a folder. Throws `invalid_argument` if there is none. */
export async function checkoutAt(folder: string): Promise<Checkout> {
  const path = await realpath(folder).catch((cause: unknown) => {
    throw new Fault("not_found", `the folder ${folder} does not exist: use the folder of a repository`, {
      cause,
    });
  });
  const { code, text, problem } = await git(
    { path },
    ["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir", "--git-common-dir"],
    { answers: [128] },
  );
  if (code !== 0) throw noCheckout(path, problem);
  const [top = "", gitDir = "", commonDir = "", ...rest] = text.trimEnd().split("\n");
  if (rest.length > 0)
    throw new Fault(
      "invalid_argument",
      `the path ${JSON.stringify(path)} of the repository has a line break, with which git cannot manage worktrees: rename the folder; or remove isolation from the agent`,
    );
  return {
    path: await realpath(top),
    gitDir: await realpath(gitDir),
    commonDir: await realpath(commonDir),
  };
}

function noCheckout(path: string, problem: string): Fault {
  const reason = /not a git repository/u.test(problem)
    ? `${path} is not in a git repository: run git init and commit the files`
    : /must be run in a work tree/u.test(problem)
      ? `${path} is not in a checkout but in a bare repository or a git folder: use the folder of a checkout`
      : `git cannot read ${path}: ${problem.trim().replace(/^fatal: /u, "")}`;
  return new Fault("invalid_argument", `${reason}; or remove isolation from the agent`, {
    details: { path },
  });
}

/**
 * Returns the state of a checkout. Throws `invalid_argument` if it has no commit yet. A repository inside the
 * checkout is not asked for its own state, so that its settings have no effect.
 */
export async function stateOf(checkout: Checkout): Promise<CheckoutState> {
  const entries = await gitList(checkout, [
    "status",
    "--porcelain=v2",
    "--branch",
    "-z",
    "--untracked-files=normal",
    "--ignored=traditional",
    "--ignore-submodules=dirty",
    "--no-renames",
  ]);
  const uncommitted: string[] = [];
  const ignored: string[] = [];
  const heads = new Map<string, string>();
  for (const entry of entries) {
    const [kind = ""] = entry;
    if (kind === "#") {
      const [, name = "", ...value] = entry.split(" ");
      heads.set(name, value.join(" "));
    } else if (kind === "!") ignored.push(entry.slice(2));
    else uncommitted.push(kind === "?" ? entry.slice(2) : afterFields(entry, kind === "u" ? 10 : 8));
  }
  const [head = "", branch = ""] = [heads.get("branch.oid"), heads.get("branch.head")];
  if (/^[0-9a-f]+$/u.test(head))
    return { head, branch: branch === "(detached)" ? null : branch, uncommitted, ignored };
  throw new Fault(
    "invalid_argument",
    `the repository ${checkout.path} has no commit, from which a worktree could start: commit once; or remove isolation from the agent`,
  );
}

/**
 * Returns files for which git reports no changes although there may be some: files that `git update-index` has
 * marked, and files in the folder of a submodule that was not fetched.
 */
export async function overlookedIn(checkout: Checkout): Promise<readonly string[]> {
  const found: string[] = [];
  for (const entry of await gitList(checkout, ["ls-files", "-v", "--stage", "-z"])) {
    const [tag = "", mode = ""] = entry.split(" ", 2);
    const path = entry.slice(entry.indexOf("\t") + 1);
    const isMarked = tag === "S" || tag !== tag.toUpperCase();
    const isSubmodule = mode === "160000";
    if (!isMarked && !isSubmodule) continue;
    const place = join(checkout.path, path);
    const state = await lstat(place).catch(absent);
    const isFilled = isSubmodule && state?.isDirectory() === true && (await readdir(place)).length > 0;
    if (isSubmodule ? isFilled : state !== undefined) found.push(isSubmodule ? `${path}/` : path);
  }
  return found;
}

/** Returns the rest of an entry after a number of fields. The rest is a path, which may contain spaces. */
function afterFields(entry: string, count: number): string {
  return entry.split(" ").slice(count).join(" ");
}

/** Returns the submodules of a commit. */
export async function submodulesOf(checkout: Checkout, commit: string): Promise<readonly string[]> {
  const { code, text } = await git(
    checkout,
    ["config", "--blob", `${commit}:.gitmodules`, "-z", "--get-regexp", String.raw`^submodule\..*\.path$`],
    { answers: [1, 128] },
  );
  if (code !== 0) return [];
  return text
    .split("\0")
    .filter((each) => each !== "")
    .map((each) => each.slice(each.indexOf("\n") + 1));
}

/**
 * Returns the name and the email address with which the user commits. If the user has none, returns those of Reeve.
 */
export async function identityOf(checkout: GitPlace): Promise<Readonly<Record<string, string>>> {
  const { text } = await git(checkout, ["config", "-z", "--get-regexp", String.raw`^user\.(name|email)$`], {
    answers: [1],
  });
  // The last value of a setting is in force.
  const settings = new Map(
    text.split("\0").map((each): [string, string] => {
      const [key = "", ...value] = each.split("\n");
      return [key, value.join("\n").trim()];
    }),
  );
  const name = settings.get("user.name") || "Reeve";
  const email = settings.get("user.email") || "reeve@localhost";
  return {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
  };
}

/** Returns the files that differ between two commits or trees. A renamed file is a deleted and a new one. */
export function changedBetween(checkout: Checkout, from: string, to: string): Promise<readonly string[]> {
  const options = ["--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=none"];
  return gitList(checkout, ["diff", ...options, "-z", from, to, "--"]);
}

/** Returns the commit of a reference, or `undefined` if it does not exist. */
export async function commitOf(checkout: GitPlace, ref: string): Promise<string | undefined> {
  const { code, text } = await git(checkout, ["rev-parse", "--verify", "--quiet", `${ref}^{commit}`], {
    answers: [1, 128],
  });
  return code === 0 ? text.trim() : undefined;
}

/** Whether `of` contains all commits of `commit`. */
export async function isAncestor(checkout: GitPlace, commit: string, of: string): Promise<boolean> {
  return (await git(checkout, ["merge-base", "--is-ancestor", commit, of], { answers: [1] })).code === 0;
}

/** Cuts a list of paths for the journal. */
export function somePaths(paths: readonly string[]): SomePaths {
  return { count: paths.length, paths: paths.slice(0, maxPaths) };
}

/**
 * Returns the object folders of other repositories from which the repository reads objects, as after `git clone
 * --shared`.
 */
export async function borrowedObjects(
  commonDir: string,
  read: (path: string) => Promise<string | undefined>,
): Promise<readonly string[]> {
  const found = new Set<string>();
  const search = async (objects: string): Promise<void> => {
    for (const line of ((await read(join(objects, "info", "alternates"))) ?? "").split("\n")) {
      const path = line.trim();
      if (path === "" || path.startsWith("#")) continue;
      const real = await realpath(path.startsWith("/") ? path : join(objects, path)).catch(() => undefined);
      if (real === undefined || found.has(real)) continue;
      found.add(real);
      await search(real);
    }
  };
  await search(join(commonDir, "objects"));
  return [...found];
}
