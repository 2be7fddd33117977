import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * The folder of this package: the nearest folder above this module that contains a manifest (package.json). It is
 * searched because the depth of the module differs between the source and the published package, whose modules are
 * bundled.
 */
export const packageRoot = rootAbove(dirname(fileURLToPath(import.meta.url)));

function rootAbove(folder: string): string {
  return existsSync(join(folder, "package.json")) || dirname(folder) === folder
    ? folder
    : rootAbove(dirname(folder));
}

/** Returns the version in the manifest of this package. */
export function packageVersion(): string {
  const manifest = readFileSync(join(packageRoot, "package.json"), "utf8");
  return (JSON.parse(manifest) as { readonly version: string }).version;
}
