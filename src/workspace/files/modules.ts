import { existsSync, readFileSync, realpathSync } from "node:fs";
import { findPackageJSON, registerHooks } from "node:module";
import { dirname, join, sep } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Fault } from "../../kernel/index.ts";
import { isBelow } from "./text/bounded-file.ts";
import { contentHash, Coverage } from "./trust/coverage.ts";

/** A module of a user. */
export interface ModuleFile {
  readonly path: string;
  /** Folder whose files count as part of the module: if one to which it refers changes, it is loaded again. */
  readonly root: string;
  /**
   * The files that the module may load, by their real paths with the hashes of their contents. Any other file, and a file
   * with another content, is refused. If absent, the module may load any file.
   */
  readonly covered?: ReadonlyMap<string, string>;
}

/** Query parameter that distinguishes the versions of a module. */
const parameter = "reeve";

/** Addresses of the folders whose modules import `reeve` from this package. */
const sharing = new Set<string>();
let isHooked = false;

/** What modules of each version may load, and the root of their project. */
const allowed = new Map<string, { readonly root: string; readonly covered: ReadonlyMap<string, string> }>();
/** Roots of the modules that were loaded, and whether every file below is checked. The nearest root decides. */
const roots = new Map<string, boolean>();
/** Versions of the modules whose addresses have no parameter: those of packages and of CommonJS. */
const versions = new Map<string, string>();
/** Versions of modules that were found and are not loaded yet. */
const found = new Map<string, string>();
/** Addresses of files of a checked project that were found, are not loaded yet, and whose loading module is not known. */
const hidden = new Set<string>();
/** Addresses of files in checked projects that were loaded without a check, because they are packages of Reeve. */
const shared = new Set<string>();

/** Lets all modules below a folder import `reeve` from this package: those of an installed package and of its dependencies. */
export function shareReeve(folder: string): void {
  sharing.add(`${pathToFileURL(realpathSync(folder)).href}/`);
}

/**
 * Loads a module of a user as native TypeScript or JavaScript. An unchanged module is loaded once; a changed one is
 * loaded anew together with the files of its folder tree that it imports. Node never unloads a module, so each changed
 * version stays in memory. Throws `invalid_argument` if the module throws or does not load in `timeoutMs` milliseconds,
 * and `permission_denied` if it loads a file that is not covered.
 */
export async function loadModule(
  { path, root, covered }: ModuleFile,
  timeoutMs: number,
): Promise<Readonly<Record<string, unknown>>> {
  hookOnce();
  const url = pathToFileURL(path);
  const version = await versionOfFile(path, root, covered !== undefined);
  const real = realpathSync(root);
  if (covered !== undefined) allowed.set(version, { root: real, covered });
  roots.set(real, covered !== undefined && !hasHost(real));
  url.searchParams.set(parameter, version);
  const stop = new AbortController();
  const loading = import(url.href) as Promise<Readonly<Record<string, unknown>>>;
  const limit = after(timeoutMs, undefined, { signal: stop.signal }).then(() => {
    throw new Fault(
      "invalid_argument",
      `${path} did not load in ${timeoutMs} ms; remove the top-level await that does not end`,
    );
  });
  try {
    return await Promise.race([loading, limit]);
  } catch (error) {
    if (Fault.is(error)) throw error;
    const advice = error instanceof SyntaxError && isCommonJs(path) ? `; ${commonJsAdvice}` : "";
    throw new Fault("invalid_argument", `${path} could not be loaded: ${describe(error)}${advice}`, {
      cause: error,
    });
  } finally {
    stop.abort();
    limit.catch(() => undefined);
  }
}

/** The version of a module: a hash of it and of the files that it loads, without packages, which are loaded once. */
async function versionOfFile(path: string, root: string, isChecked: boolean): Promise<string> {
  const coverage = new Coverage(root, { packages: false });
  await coverage.addFile(path);
  // Projects with equal files may load different packages.
  return `${isChecked ? "checked" : "free"}-${contentHash(Buffer.from(`${root}\n${coverage.hash()}`))}`;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Lets modules of users import `reeve` from this package, wherever they are, gives the files that they import the version
 * of the importing module, and checks the content of each file in the moment in which it is loaded. A module can hide who
 * loads a file, for example with `createRequire` of another folder, so each file of a checked project counts.
 */
function hookOnce(): void {
  if (isHooked) return;
  isHooked = true;
  registerHooks({
    resolve(specifier, context, next) {
      const version = versionOf(context.parentURL);
      if (/^reeve(?:\/|$)/u.test(specifier) && (version !== undefined || isSharing(context.parentURL)))
        return next(specifier, { ...context, parentURL: import.meta.url });
      const resolved = next(specifier, context);
      const isFile = resolved.url.startsWith("file:");
      const isHidden = isFile && isHiddenLoad(resolved.url, context.parentURL);
      // Node loads a compiled file without the other hook.
      if (isFile && /\.node(?:[?#]|$)/u.test(resolved.url)) requireCovered(resolved.url, version, isHidden);
      if (version === undefined) {
        if (isHidden) hidden.add(resolved.url);
        return resolved;
      }
      if (!isFile) {
        // A module in an address has no file to check, but it may load files.
        if (resolved.url.startsWith("data:")) versions.set(resolved.url, version);
        return resolved;
      }
      if (resolved.url.includes("/node_modules/") || !context.conditions.includes("import")) {
        if (allowed.has(version)) found.set(resolved.url, version);
        return resolved;
      }
      const url = new URL(resolved.url);
      url.searchParams.set(parameter, version);
      return { ...resolved, url: url.href };
    },
    load(url, context, next) {
      const version = found.get(url) ?? versionOf(url);
      const isHidden = hidden.has(url) || (url.startsWith("file:") && isHiddenLoad(url, url));
      found.delete(url);
      hidden.delete(url);
      const loaded = next(url, context);
      if (!url.startsWith("file:")) return loaded;
      const checked = requireCovered(url, version, isHidden, loaded.source);
      if (checked === undefined) return loaded;
      versions.set(url, checked);
      // A module of CommonJS has the address of its file when it loads others, whatever address it was imported by.
      if (loaded.format?.startsWith("module") !== true)
        versions.set(pathToFileURL(fileURLToPath(url)).href, checked);
      return loaded;
    },
  });
}

/**
 * Throws unless the file has the content that the decision of the loading module covers or, if it is hidden which module
 * loads it, one of the decisions about its project. Returns the version of the decision, or `undefined` if the file may be
 * loaded without one.
 */
function requireCovered(
  url: string,
  version: string | undefined,
  isHidden: boolean,
  source?: unknown,
): string | undefined {
  const path = fileURLToPath(url);
  const own = version !== undefined && allowed.has(version);
  const root = rootOf(path);
  if (!own && !isHidden) {
    if (root !== undefined) shared.add(url);
    return undefined;
  }
  for (const [each, { root: other, covered }] of allowed) {
    if (own ? each !== version : other !== root) continue;
    const hash = covered.get(path);
    if (hash !== undefined && isContent(source, path, hash)) return each;
  }
  throw new Fault(
    "permission_denied",
    `${path} is not loaded, because your trust does not cover it as it is; import it by a literal name, and run reeve trust`,
  );
}

/**
 * Whether a file is part of a checked project although it is not known that the project loads it. Packages may be shared
 * with Reeve, so a package counts only if no module, or a module of the project, loads it.
 */
function isHiddenLoad(url: string, parent: string | undefined): boolean {
  const root = rootOf(fileURLToPath(url));
  if (root === undefined || roots.get(root) !== true) return false;
  if (!url.includes("/node_modules/")) return true;
  // Some versions of Node find a module of CommonJS that is imported a second time, for no module.
  if (parent === undefined) return !shared.has(url);
  return (
    parent.startsWith("file:") && !parent.includes("/node_modules/") && rootOf(fileURLToPath(parent)) === root
  );
}

/** The nearest root above a file. */
function rootOf(path: string): string | undefined {
  let nearest: string | undefined;
  for (const root of roots.keys())
    if (isBelow(path, root) && root.length >= (nearest?.length ?? 0)) nearest = root;
  return nearest;
}

/** Whether files of a project may be those of a program, which loads them itself: of any one but the command of Reeve. */
function hasHost(root: string): boolean {
  const own = findPackageJSON(import.meta.url) ?? import.meta.url;
  if (isBelow(own, root) && !own.includes(`${sep}node_modules${sep}`)) return true;
  const [, main] = process.argv;
  if (main === undefined) return false;
  try {
    return findPackageJSON(pathToFileURL(realpathSync(main))) !== own;
  } catch {
    // The main module is not a file, so a loader of the program chose it.
    return true;
  }
}

function isSharing(parent: string | undefined): boolean {
  return parent !== undefined && [...sharing].some((folder) => parent.startsWith(folder));
}

/**
 * Whether the loaded content has the hash. Node hands over the decoded text of some modules, and reads the others
 * itself.
 */
function isContent(source: unknown, path: string, hash: string): boolean {
  if (source instanceof Uint8Array) return contentHash(source) === hash;
  if (source instanceof ArrayBuffer) return contentHash(new Uint8Array(source)) === hash;
  const bytes = readFileSync(path);
  return contentHash(bytes) === hash && (typeof source !== "string" || source === bytes.toString("utf8"));
}

function versionOf(address: string | undefined): string | undefined {
  if (address === undefined) return undefined;
  return versions.get(address) ?? URL.parse(address)?.searchParams.get(parameter) ?? undefined;
}

/** What the error of a file says whose manifest makes it CommonJS, and how to fix it. */
export const commonJsAdvice =
  'the nearest package.json has "type": "commonjs"; give the file the ending .mts or .mjs, or set "type": "module"';

/**
 * Whether Node reads a file as CommonJS, because the nearest `package.json` says so, as `npm init` writes it. Without a type,
 * Node decides by the text of the file.
 */
export function isCommonJs(path: string): boolean {
  if (!/\.[jt]s$/u.test(path)) return false;
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const manifest = join(folder, "package.json");
    if (existsSync(manifest)) return typeIn(manifest) === "commonjs";
    if (dirname(folder) === folder) return false;
  }
}

function typeIn(manifest: string): unknown {
  try {
    return (JSON.parse(readFileSync(manifest, "utf8")) as { readonly type?: unknown } | null)?.type;
  } catch {
    // Node cannot read it either, and says so when it loads the file.
    return undefined;
  }
}
