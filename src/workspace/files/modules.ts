import { realpathSync } from "node:fs";
import { registerHooks } from "node:module";
import { setTimeout as after } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { Fault } from "../../kernel/index.ts";
import { moduleHash } from "./trust/project-hash.ts";

/** How a module is loaded. */
export interface LoadOptions {
  /** Folder whose files count as part of the module: if one to which it refers changes, it is loaded again. */
  readonly root: string;
  /** Maximum time of the import, in milliseconds. */
  readonly timeoutMs: number;
}

/** Query parameter that distinguishes the versions of a module. */
const parameter = "reeve";

/** Addresses of the folders whose modules import `reeve` from this package. */
const sharing = new Set<string>();
let isHooked = false;

/** Lets all modules below a folder import `reeve` from this package: those of an installed package and of its dependencies. */
export function shareReeve(folder: string): void {
  sharing.add(`${pathToFileURL(realpathSync(folder)).href}/`);
}

/**
 * Loads a module of a user as native TypeScript or JavaScript. An unchanged module is loaded once; a changed one is
 * loaded anew together with the files of its folder tree that it imports. Node never unloads a module, so each changed
 * version stays in memory. Throws `invalid_argument` if the module throws or does not load in time.
 */
export async function loadModule(
  path: string,
  { root, timeoutMs }: LoadOptions,
): Promise<Readonly<Record<string, unknown>>> {
  hookOnce();
  const url = pathToFileURL(path);
  url.searchParams.set(parameter, await moduleHash(path, root));
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
    throw new Fault("invalid_argument", `${path} could not be loaded: ${describe(error)}`, { cause: error });
  } finally {
    stop.abort();
    limit.catch(() => undefined);
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Lets modules of users import `reeve` from this package, wherever they are, and gives the files that they import the
 * version of the importing module.
 */
function hookOnce(): void {
  if (isHooked) return;
  isHooked = true;
  registerHooks({
    resolve(specifier, context, next) {
      const version = versionOf(context.parentURL);
      if (/^reeve(?:\/|$)/u.test(specifier) && (version !== null || isSharing(context.parentURL)))
        return next(specifier, { ...context, parentURL: import.meta.url });
      if (version === null) return next(specifier, context);
      const resolved = next(specifier, context);
      const isFile = resolved.url.startsWith("file:") && !resolved.url.includes("/node_modules/");
      if (!isFile || !context.conditions.includes("import")) return resolved;
      const url = new URL(resolved.url);
      url.searchParams.set(parameter, version);
      return { ...resolved, url: url.href };
    },
  });
}

function isSharing(parent: string | undefined): boolean {
  return parent !== undefined && [...sharing].some((folder) => parent.startsWith(folder));
}

function versionOf(parent: string | undefined): string | null {
  return parent === undefined ? null : (URL.parse(parent)?.searchParams.get(parameter) ?? null);
}
