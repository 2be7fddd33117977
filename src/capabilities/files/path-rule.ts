import { readlinkSync, realpathSync } from "node:fs";
import { dirname, isAbsolute, join, parse, relative, resolve, sep } from "node:path";
import {
  Fault,
  type PermissionRule,
  type TaskFolder,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { codeOf } from "./error-code.ts";

/** Options of `pathRule()`. */
export interface PathRuleOptions {
  /** Name or pattern of the tools, such as `write` or `*`. */
  readonly tool: string;
  /** Files and folders to which the rule applies, absolute or relative to `root`. A folder includes everything below it. */
  readonly paths: readonly string[];
  /** Folder from which relative paths start: the root of the file tools. Default: the working directory. */
  readonly root?: string;
  /** Name of the argument with the path. If a call has no such argument, its path is `root`. Default: `path`. */
  readonly argument?: string;
  /**
   * Names of tools that work on everything below their path. A rule that asks or denies also applies to their calls
   * on a folder that contains one of `paths`. Default: `grep` and `find`.
   */
  readonly recursive?: readonly string[];
  /** The reason that the model and the person who is asked receive. */
  readonly reason?: string;
}

const knownOptions = optionTable({
  tool: is.text(),
  paths: is.list({ of: is.text(), required: true }),
  root: is.text(),
  argument: is.text({ default: "path" }),
  recursive: is.list({ of: is.text() }),
  reason: is.text(),
} satisfies OptionKinds<PathRuleOptions>);

/**
 * Creates a permission rule for files and folders. It compares absolute paths without `.` and `..`, both as written
 * and with links followed: a rule that allows needs both to be inside `paths`, a rule that asks or denies one of
 * them. If a task has its own folder, `root` and `paths` mean the same places in that folder (D1).
 *
 * @example
 * ```ts
 * import { permissions } from "reeve";
 * import { pathRule } from "reeve/tools";
 *
 * const root = "./project";
 * const rules = permissions({
 *   allow: [pathRule({ tool: "write", root, paths: ["src", "test"] })],
 *   deny: [pathRule({ tool: "*", root, paths: [".env", "secrets"] })],
 *   onAsk: "wait",
 * });
 * ```
 */
export function pathRule(options: PathRuleOptions): Exclude<PermissionRule, string> {
  const {
    tool,
    paths,
    argument,
    recursive = ["grep", "find"],
    reason,
  } = knownOptions.read("pathRule()", options);
  const root = resolve(options.root ?? ".");
  if (paths.length === 0)
    throw new Fault("invalid_argument", `invalid paths of the rule for ${tool}: expected a list of paths`);
  return {
    tool,
    when: (input, _facts, { kind, toolName, folder }) => {
      const own = moved(root, folder);
      const target = targetOf(own, pathIn(input, argument));
      const isOn = (path: string, part: keyof PathTarget): boolean => {
        const ruled = targetOf(own, isAbsolute(path) ? moved(path, folder) : path)[part];
        const isBelow = isInside(target[part], ruled);
        return isBelow || (kind !== "allow" && recursive.includes(toolName) && isInside(ruled, target[part]));
      };
      return paths.some((path) =>
        kind === "allow"
          ? isOn(path, "written") && isOn(path, "real")
          : isOn(path, "written") || isOn(path, "real"),
      );
    },
    ...(reason !== undefined && { reason }),
  };
}

/** D1: returns the path as it is in the own folder of a task. Paths outside the original folder do not change. */
function moved(path: string, folder: TaskFolder | null): string {
  if (folder === null) return path;
  const { origin } = folder;
  const spelling = [path, existing(path)].find((each) => isInside(each, origin));
  return spelling === undefined ? path : resolve(folder.path, relative(origin, spelling));
}

/** A path in the two forms in which it is compared. */
interface PathTarget {
  /** Absolute path as written, without `.` and `..`. */
  readonly written: string;
  /** Absolute path with links followed, as the system resolves it. Parts that do not exist stay as written. */
  readonly real: string;
}

function targetOf(root: string, path: string): PathTarget {
  return { written: folded(resolve(root, path)), real: folded(realPath(root, path)) };
}

function pathIn(input: unknown, argument: string): string {
  const path = (input as Readonly<Record<string, unknown>> | null | undefined)?.[argument];
  if (path === undefined) return ".";
  if (typeof path === "string" && !path.includes("\0")) return path;
  throw new Fault("invalid_argument", `invalid ${argument}: expected a path`);
}

/** Follows a path part by part. After a link, `..` leads to the parent of the link's target, as for the file tools. */
function realPath(root: string, path: string): string {
  const from = isAbsolute(path) ? parse(path).root : existing(root);
  const parts = (isAbsolute(path) ? path.slice(from.length) : path).split(sep === "\\" ? /[\\/]/ : "/");
  let at = from;
  for (const part of parts) {
    if (part === "" || part === ".") continue;
    at = part === ".." ? dirname(at) : existing(join(at, part));
  }
  return at;
}

/**
 * Follows the links of a path, even a link whose target does not exist. A path that does not exist is returned
 * unchanged.
 */
function existing(path: string): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
    const target = linkTarget(path);
    return target === undefined ? path : realPath(dirname(path), target);
  }
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (isMissing(error) || codeOf(error) === "EINVAL") return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR";
}

function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

/** Whether the file system of this system usually ignores case. */
const ignoresCase = process.platform === "darwin" || process.platform === "win32";

/** Converts a path to a form that is equal for all spellings which name the same file on this system. */
function folded(path: string): string {
  return ignoresCase ? path.normalize("NFC").toLowerCase() : path;
}
