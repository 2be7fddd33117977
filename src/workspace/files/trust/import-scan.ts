import { lstatSync, readFileSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** What the text of a module refers to. */
export interface References {
  /** Absolute paths of existing files and folders. */
  readonly paths: readonly string[];
  /** Names of packages. */
  readonly packages: readonly string[];
  /** Whether the module uses names of the field `imports` of `package.json`, such as `#config`. */
  readonly usesImports: boolean;
}

/** Endings of the modules that a workspace loads. */
export const codeEndings: readonly string[] = [".ts", ".mts", ".js", ".mjs"];

/** Files whose text is searched for references. */
export const codeFile = /\.[cm]?[jt]sx?$/u;

/**
 * Finds what a module refers to. Every literal text that names an existing file relative to the module counts, not only
 * the texts of `import` and `require`, so that the result is rather too large than too small. Names that are computed
 * at run time cannot be found.
 */
export function scanReferences(text: string, file: string): References {
  const paths = new Set<string>();
  const packages = new Set<string>();
  let usesImports = false;
  for (const [, , literal = ""] of text.matchAll(/(["'`])((?:\\.|(?!\1)[^\\\n])*)\1/gu)) {
    if (/^(?:\.{1,2}(?:[/\\]|$)|\/|file:)/u.test(literal)) {
      const path = pathOf(literal, file);
      if (path !== undefined) paths.add(path);
    } else if (literal.startsWith("#")) usesImports = true;
  }
  for (const [, , name = ""] of text.matchAll(imported)) {
    // A quotation mark in a comment can hide the text of an import from the search above.
    const path = /^[./]/u.test(name) ? pathOf(name, file) : undefined;
    if (path !== undefined) paths.add(path);
    if (!/^(?:[./#]|node:|file:|data:)/u.test(name)) packages.add(packageOf(name));
  }
  return { paths: [...paths], packages: [...packages], usesImports };
}

/** Matches the specifiers of `import`, `export ... from`, `import()` and `require()`. */
const imported = /\b(?:from|import|require(?:\.resolve)?)\s*\(?\s*(["'`])((?:\\.|(?!\1)[^\\\n])+)\1/gu;

function packageOf(specifier: string): string {
  const parts = specifier.split("/");
  return specifier.startsWith("@") ? parts.slice(0, 2).join("/") : (parts[0] ?? specifier);
}

/** Returns the file that a literal names, tried as Node does for `import` and for `require`. */
function pathOf(literal: string, file: string): string | undefined {
  const base = absolute(literal.replace(/[?#].*$/u, ""), file);
  if (base === undefined) return undefined;
  const candidates = [base, ...[".js", ".json", ".cjs", ".mjs", ".ts", ".node"].map((end) => base + end)];
  return candidates.find(isThere);
}

/** Whether something exists under a path, also a link without a target: the hash covers the link itself. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    // A folder of the path is a link to itself, or cannot be read. Node cannot load the file either.
    return false;
  }
}

function absolute(literal: string, file: string): string | undefined {
  try {
    if (literal.startsWith("file:")) return fileURLToPath(literal);
  } catch {
    // The text is not a valid address and names no file.
    return undefined;
  }
  return isAbsolute(literal) ? literal : resolve(dirname(file), literal);
}

/** Returns all texts of a JSON document, at any depth. An invalid document has none. */
export function textsIn(json: string): readonly string[] {
  const texts: string[] = [];
  try {
    JSON.parse(json, (_key, value: unknown) => {
      if (typeof value === "string") texts.push(value);
      return value;
    });
  } catch {
    // The reader of the file reports the problem, and uses nothing of it.
    return [];
  }
  return texts;
}

/** The packages that a lock file of npm records, by the path of their folder relative to the lock file. */
export interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** Returns the packages of the nearest lock file at or above a folder, up to `root`. Empty if there is none. */
export function lockedPackages(folder: string, root: string): Readonly<Record<string, LockedPackage>> {
  for (let at = folder; ; at = dirname(at)) {
    for (const name of ["package-lock.json", "node_modules/.package-lock.json"]) {
      const packages = lockIn(join(at, name));
      if (packages !== undefined) return packages;
    }
    if (at === root || dirname(at) === at) return {};
  }
}

function lockIn(path: string): Readonly<Record<string, LockedPackage>> | undefined {
  try {
    const lock = JSON.parse(readFileSync(path, "utf8")) as { packages?: Record<string, LockedPackage> };
    return lock.packages ?? {};
  } catch {
    // There is no lock file, or npm cannot read it either.
    return undefined;
  }
}

/** Returns name, version and integrity of packages and of all that they depend on, in a fixed order. */
export function lockLines(
  names: Iterable<string>,
  packages: Readonly<Record<string, LockedPackage>>,
): readonly string[] {
  const entries = Object.entries(packages).map(([path, locked]) => ({
    path,
    name: path.split("node_modules/").at(-1) ?? "",
    locked,
  }));
  const wanted = new Set(names);
  // A set that grows during its iteration also yields the names that are added.
  for (const name of wanted)
    for (const entry of entries)
      if (entry.name === name)
        for (const next of Object.keys(entry.locked.dependencies ?? {})) wanted.add(next);
  return [...wanted].toSorted().flatMap((name) => {
    const found = entries.filter((entry) => entry.name === name);
    if (found.length === 0) return [`package ${name}`];
    return found.map(
      ({ path, locked }) =>
        `package ${path} ${locked.version ?? ""} ${locked.integrity ?? locked.resolved ?? ""}`,
    );
  });
}
