// Builds the page into dist/page, if it is missing or older than its sources. `--always` builds it in any case.
import { globSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const repository = fileURLToPath(new URL("..", import.meta.url));
const place = join(repository, "dist/page");
const built = join(place, "index.html");

/** Builds the page unless it is newer than everything that it is made of. */
export async function buildPage({ always = false } = {}): Promise<void> {
  if (!always && changedAt([built]) > changedAt(sources())) return;
  const outDir = join(repository, "node_modules/.cache", `page-${process.pid}`);
  await build({ configFile: join(repository, "web/vite.config.ts"), logLevel: "warn", build: { outDir } });
  replacePage(outDir);
}

/** Puts a built page in its place, so that a server which starts meanwhile finds the old page or the new one. */
function replacePage(made: string): void {
  const old = `${made}-old`;
  mkdirSync(place, { recursive: true });
  try {
    renameSync(place, old);
    renameSync(made, place);
  } catch (error) {
    // Another process has built the page at the same time and was faster.
    if (!["ENOENT", "ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  } finally {
    for (const folder of [old, made]) rmSync(folder, { recursive: true, force: true });
  }
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
