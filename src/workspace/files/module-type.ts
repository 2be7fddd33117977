import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

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
