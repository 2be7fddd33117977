import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, isAbsolute, sep } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Fault } from "../../kernel/index.ts";
import { codeOf } from "../files/error-code.ts";

/** The place in which git works. */
export interface GitPlace {
  /** Folder in which git starts. */
  readonly path: string;
  /**
   * The git folder of `path` and that of its repository. If given, git does not read the file `.git` in `path`, nor the
   * settings that it leads to, because an agent may have replaced it.
   */
  readonly gitDir?: string;
  readonly commonDir?: string;
  /**
   * Whether an agent has written the files. If so, git executes no filter and no merge driver that could load one
   * of them.
   */
  readonly isOfAgent?: boolean;
}

/** Options of `git()`. */
export interface GitOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Exit codes other than 0 that are valid answers. Default: none. */
  readonly answers?: readonly number[];
  readonly signal?: { readonly aborted: boolean };
  /**
   * Milliseconds after which git is ended. The limit is needed because git waits forever for a pipe that an agent
   * has put in place of a file. Default: 30 minutes.
   */
  readonly longestMs?: number;
}

/** What git answered. */
export interface GitAnswer {
  readonly code: number;
  readonly text: string;
  /** What git wrote to standard error, such as why it refused. */
  readonly problem: string;
}

/** The oldest version with `git merge-tree --write-tree`. */
const oldest = [2, 38] as const;

/**
 * Settings that replace those of the user. The first ones prevent that git executes a program: hooks, a monitor of
 * files, signing, and garbage collection. An agent may have written the programs that these settings name. The
 * others prevent changes of files that are not part of a merge, or another output.
 */
const settings = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.ignoreStat=false",
  "commit.gpgSign=false",
  "merge.verifySignatures=false",
  "gc.auto=0",
  "maintenance.auto=false",
  "submodule.recurse=false",
  "merge.autoStash=false",
  "core.quotePath=false",
  "advice.detachedHead=false",
].flatMap((setting) => ["-c", setting]);

/**
 * Matches commands of filters that load nothing from the folder in which they run. Other filters may load files,
 * although only the user can define them: `python -m nbstripout` loads `nbstripout.py` of the folder, and `sh
 * tools/clean.sh` is a file in it.
 */
const closedFilter = /^"?(?:\/[^\s"]*\/)?git(?:-|" | )(?:lfs|crypt|annex)(?=["\s])[^;&|$`<>]*$/u;

/** Large files may take this long. */
const defaultLongestMs = 30 * 60_000;

/** Number of times that a command is repeated when another process holds a lock of the repository. */
const maxRepeats = 20;
const repeatMs = 100;

/**
 * Executes git and returns its answer. Environment variables of this process that redirect git are not passed on.
 * Throws `dependency_missing` if git is missing or too old, and `tool_failed` with git's error output for any other
 * failure.
 */
export async function git(
  place: GitPlace,
  args: readonly string[],
  options: GitOptions = {},
): Promise<GitAnswer> {
  await checkVersion();
  const env = { ...options.env, ...(place.isOfAgent === true && (await withoutFilters(place))) };
  for (let repeat = 0; ; repeat++) {
    const answer = await execute(place, args, { ...options, env });
    if (answer.code === 0 || options.answers?.includes(answer.code) === true) return answer;
    const isLocked = /\.lock': File exists/u.test(answer.problem);
    if (!isLocked || repeat === maxRepeats || options.signal?.aborted === true)
      throw gitFault(place, args, answer);
    await delay(repeatMs);
  }
}

/**
 * Returns the environment variables that switch off the user's filters and merge drivers that could load files of
 * the folder.
 */
async function withoutFilters(place: GitPlace): Promise<Readonly<Record<string, string>>> {
  const pattern = String.raw`^(filter\..*\.(clean|smudge|process)|merge\..*\.driver)$`;
  const { text } = await execute(place, ["config", "-z", "--get-regexp", pattern], {});
  const off = new Map<string, string>();
  for (const entry of text.split("\0")) {
    const end = entry.indexOf("\n");
    const [key, command] = [entry.slice(0, end), entry.slice(end + 1)];
    if (end === -1 || closedFilter.test(command)) continue;
    if (key.startsWith("merge.")) off.set(key, "git merge-file --marker-size=%L %A %O %B");
    else off.set(key, "").set(key.replace(/\.[^.]*$/u, ".required"), "false");
  }
  const variables = [...off].flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { ...Object.fromEntries(variables), GIT_CONFIG_COUNT: String(off.size) };
}

/** Returns what git printed, without the end of the last line. */
export async function gitText(
  place: GitPlace,
  args: readonly string[],
  options: GitOptions = {},
): Promise<string> {
  return (await git(place, args, options)).text.replace(/\n$/u, "");
}

/** Returns a list that git printed with `-z`. */
export async function gitList(
  place: GitPlace,
  args: readonly string[],
  options: GitOptions = {},
): Promise<readonly string[]> {
  return (await git(place, args, options)).text.split("\0").filter((each) => each !== "");
}

/** Creates the fault for a command that failed in git. */
function gitFault({ path }: GitPlace, args: readonly string[], { code, problem }: GitAnswer): Fault {
  const name = args.find((each) => !each.startsWith("-")) ?? "";
  const reason = problem.trim().replace(/^fatal: /u, "") || `exit code ${code}`;
  return new Fault("tool_failed", `git ${name} failed in ${path}: ${reason}`, {
    details: { command: name, path, exitCode: code },
  });
}

/** The value of PATH with which the version was checked. */
let checkedPath: string | undefined;

/** Checks the version once for each value of PATH, so that a git that is installed later is found. */
async function checkVersion(): Promise<void> {
  const path = process.env["PATH"] ?? "";
  if (checkedPath === path) return;
  await findVersion();
  checkedPath = path;
}

async function findVersion(): Promise<void> {
  const { text } = await execute({ path: process.cwd() }, ["version"], {});
  const [major = 0, minor = 0] = (/(\d+)\.(\d+)/u.exec(text) ?? []).slice(1).map(Number);
  if (major > oldest[0] || (major === oldest[0] && minor >= oldest[1])) return;
  throw new Fault(
    "dependency_missing",
    `${text.trim() || "git"} is too old for worktrees: install git ${oldest.join(".")} or newer, or remove isolation from the agent`,
  );
}

function execute(
  { path, gitDir, commonDir }: GitPlace,
  args: readonly string[],
  { env = {}, input, longestMs = defaultLongestMs }: GitOptions,
): Promise<GitAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<GitAnswer>();
  const child = spawn("git", [...settings, ...args], {
    cwd: path,
    env: {
      ...ownEnvironment(),
      ...(gitDir !== undefined && { GIT_DIR: gitDir, GIT_WORK_TREE: path }),
      ...(commonDir !== undefined && { GIT_COMMON_DIR: commonDir }),
      ...env,
    },
    stdio: "pipe",
    windowsHide: true,
  });
  // The option `timeout` of Node would keep this process alive if git cannot be started.
  const limit = setTimeout(() => child.kill("SIGKILL"), longestMs);
  const output: Buffer[] = [];
  const errors: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => errors.push(chunk));
  child.on("error", (error) => {
    clearTimeout(limit);
    reject(missing(path, error));
  });
  child.on("close", (code) => {
    clearTimeout(limit);
    resolve({
      code: code ?? -1,
      text: Buffer.concat(output).toString("utf8"),
      problem: child.killed
        ? `it was ended after ${Math.ceil(longestMs / 1000)} s; look for named pipes and for very large files in the folder`
        : Buffer.concat(errors).toString("utf8"),
    });
  });
  // Git may end before it has read its input.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input ?? "");
  return promise;
}

/**
 * Returns the environment of this process without the variables that redirect git. It has such variables if a hook
 * of git started it.
 */
function ownEnvironment(): Record<string, string | undefined> {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("GIT_") || kept.has(name));
  const variables = { LC_ALL: "C", GIT_TERMINAL_PROMPT: "0", GIT_OPTIONAL_LOCKS: "0" };
  return { ...Object.fromEntries(own), ...variables, PATH: ownPath() };
}

/**
 * Returns the folders in which git and its programs are searched. Folders of packages and relative folders are left
 * out, because an agent may have written a program named git there.
 */
function ownPath(): string {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return folders
    .filter((each) => isAbsolute(each) && !each.split(sep).includes("node_modules"))
    .join(delimiter);
}

/** Variables that name settings and certificates of the user. */
const kept: ReadonlySet<string> = new Set([
  "GIT_CONFIG_GLOBAL",
  "GIT_CONFIG_SYSTEM",
  "GIT_CONFIG_NOSYSTEM",
  "GIT_EXEC_PATH",
]);

function missing(path: string, cause: Error): Fault {
  if (codeOf(cause) !== "ENOENT") return Fault.from(cause);
  if (!existsSync(path))
    return new Fault("not_found", `the folder ${path} does not exist: move it back`, {
      cause,
    });
  return new Fault(
    "dependency_missing",
    `git cannot be started in ${path}: install git ${oldest.join(".")} or newer, or remove isolation from the agent`,
    { cause },
  );
}
