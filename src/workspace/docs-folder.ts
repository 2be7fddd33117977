import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

let found: { readonly folder: string | undefined } | undefined;

/** Returns the folder of the documentation that the package contains. Looks for it once. */
export function docsFolder(): string | undefined {
  found ??= { folder: docsAbove(dirname(fileURLToPath(import.meta.url))) };
  return found.folder;
}

function docsAbove(folder: string): string | undefined {
  if (existsSync(join(folder, "package.json"))) {
    const docs = join(folder, "docs");
    return existsSync(docs) ? docs : undefined;
  }
  return dirname(folder) === folder ? undefined : docsAbove(dirname(folder));
}
