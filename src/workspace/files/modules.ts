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
  /**
   * Folder whose files count as part of the module. If one of them that the module imports changes, the module is
   * loaded again.
   */
  readonly root: string;
  /**
   * The files that the module may load, by their real paths with the hashes of their contents. Loading any other
   * file, or a file with another content, throws. If absent, the module may load any file.
   */
  readonly covered?: ReadonlyMap<string, string>;
}

/** Query parameter that distinguishes the versions of a module. */
const parameter = "reeve";

/** URLs of the folders whose modules import `reeve` from this package. */
const sharing = new Set<string>();
let isHooked = false;

/** The files that the modules of each version may load, and the root of their project. */
const allowed = new Map<string, { readonly root: string; readonly covered: ReadonlyMap<string, string> }>();
/**
 * Root folders of the loaded modules, and whether every file below the root is checked. For a file, the nearest
 * root applies.
 */
const roots = new Map<string, boolean>();
/** Versions of the modules whose URLs have no query parameter: modules of packages and CommonJS modules. */
const versions = new Map<string, string>();
/** Versions of modules that were found and are not loaded yet. */
const found = new Map<string, string>();
/**
 * URLs of files of a checked project that were found and are not loaded yet, and of which it is not known which
 * module loads them.
 */
const hidden = new Set<string>();
/** URLs of files in checked projects that were loaded without a check, because they belong to packages of Reeve. */
const shared = new Set<string>();

/**
 * Lets all modules below a folder import `reeve` from this package. Used for an installed package and its
 * dependencies.
 */
export function shareReeve(folder: string): void {
  sharing.add(`${pathToFileURL(realpathSync(folder)).href}/`);
}

/**
 * Loads a module of a user as native TypeScript or JavaScript. An unchanged module is loaded once. A changed module
 * is loaded again, together with the files of its folder tree that it imports. Node never unloads a module, so each
 * changed version stays in memory. Throws `invalid_argument` if the module throws or does not load in `timeoutMs`
 * milliseconds, and `permission_denied` if it loads a file that is not covered.
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

/**
 * Returns the version of a module: a hash of the module and of the files that it loads. Packages are not included,
 * because they are loaded only once.
 */
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
 * Installs the hooks for modules of users. The hooks let these modules import `reeve` from this package, give the
 * files that they import the version of the importing module, and check the content of each file when it is loaded.
 * A module can hide who loads a file, for example with `createRequire` of another folder, so that each file of a
 * checked project is checked.
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
 * Throws unless the file has the content that the decision of the loading module covers. If it is unknown which
 * module loads the file, one of the decisions about its project must cover it. Returns the version of the decision,
 * or `undefined` if the file may be loaded without a decision.
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
 * Whether a file is part of a checked project although it is unknown whether the project loads it. Packages may be
 * shared with Reeve, so that a file of a package counts only if no module, or a module of the project, loads it.
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

/** Whether a program other than the command of Reeve may load files of a project itself. */
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
 * Whether the loaded content has the hash. For some modules Node passes the decoded text; for the others this
 * function reads the file.
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

/** Advice in the error for a file that is CommonJS because of its `package.json`, with the way to fix it. */
export const commonJsAdvice =
  'the nearest package.json has "type": "commonjs"; give the file the ending .mts or .mjs, or set "type": "module"';

/**
 * Whether Node reads a file as CommonJS because the nearest `package.json` declares this type, as `npm init` does.
 * Without a declared type, Node decides by the text of the file.
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
