import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

/** A folder with bundled scripts, each named NAME.mjs. */
export interface BundledScripts {
  readonly dir: string;
  remove(): Promise<void>;
}

/**
 * Bundles scripts that a suite starts as processes many times. A bundle loads in less than half the time that the
 * separate sources need.
 */
export async function bundleScripts(input: Readonly<Record<string, string>>): Promise<BundledScripts> {
  // In the repository, so that the bundle finds the installed packages.
  const cache = fileURLToPath(new URL("../node_modules/.cache", import.meta.url));
  await mkdir(cache, { recursive: true });
  const dir = await mkdtemp(join(cache, "scripts-"));
  const built = await rolldown({ input: { ...input }, external: /^[^./]/u, platform: "node" });
  await built.write({
    dir,
    format: "esm",
    entryFileNames: "[name].mjs",
    chunkFileNames: "[name]-[hash].mjs",
  });
  await built.close();
  return { dir, remove: () => rm(dir, { recursive: true, force: true }) };
}
