// Builds the page into dist/page, if it is missing or older than its sources. `--always` builds it in any case.
import { globSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const repository = fileURLToPath(new URL("..", import.meta.url));
const built = join(repository, "dist/page/index.html");

/** Builds the page unless it is newer than everything that it is made of. */
export async function buildPage({ always = false } = {}): Promise<void> {
  if (!always && changedAt([built]) > changedAt(sources())) return;
  await build({ configFile: join(repository, "web/vite.config.ts"), logLevel: "warn" });
}

function sources(): readonly string[] {
  const patterns = ["web/**/*.{ts,tsx,css,html,svg}", "src/surfaces/view/*.ts", "src/kernel/**/*.ts"];
  return globSync(patterns, { cwd: repository }).map((file) => join(repository, file));
}

/** The latest time at which one of the files changed. 0 if none exists. */
function changedAt(files: readonly string[]): number {
  return Math.max(0, ...files.map((file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0));
}

if (import.meta.main) await buildPage({ always: process.argv.includes("--always") });
