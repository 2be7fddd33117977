// Builds the page into dist/page, unless its files and its sources are as the last build left them. `--always` builds it anyway.
import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("..", import.meta.url));

/** The files that the page is made of. The lock file stands for the packages. */
const sources = [
  "web/**/*.{ts,tsx,css,html,svg,woff2,txt}",
  "src/surfaces/view/*.ts",
  "src/kernel/**/*.ts",
  "package-lock.json",
];

/** Builds the page if it is not current. */
export async function buildPage({ always = false } = {}): Promise<void> {
  const dist = join(repository, "dist");
  if (!always && isPageCurrent(dist)) return;
  const outDir = join(repository, "node_modules/.cache", `page-${process.pid}`);
  // Read before the build, so that a source that changes meanwhile is built again.
  const used = hashesOf(repository, sources);
  // Loaded here, because a page that is current needs only a tenth of a second without it.
  const { build } = await import("vite");
  // A test runner sets another value, and the page would be a tenth larger than the one that users get.
  const { NODE_ENV } = process.env;
  process.env["NODE_ENV"] = "production";
  await build({ configFile: join(repository, "web/vite.config.ts"), logLevel: "warn", build: { outDir } });
  if (NODE_ENV === undefined) delete process.env["NODE_ENV"];
  else process.env["NODE_ENV"] = NODE_ENV;
  const record = recordOf(used, hashesOf(outDir, ["**"]));
  replacePage(join(dist, "page"), outDir);
  writeFileSync(join(dist, "page.json"), record);
}

/** Whether every file of the page in `dist` and every source is as the last build of the page left it. */
export function isPageCurrent(dist: string): boolean {
  try {
    const current = recordOf(hashesOf(repository, sources), hashesOf(join(dist, "page"), ["**"]));
    return readFileSync(join(dist, "page.json"), "utf8") === current;
  } catch (error) {
    // The page was never built, or another process replaces it now.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return false;
  }
}

function recordOf(used: Hashes, page: Hashes): string {
  return JSON.stringify({ sources: used, page });
}

/** Puts a built page in its place, so that a server which starts meanwhile finds the old page or the new one. */
function replacePage(place: string, made: string): void {
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

/** Paths of files with the hashes of their contents, in a fixed order. */
type Hashes = Readonly<Record<string, string>>;

function hashesOf(folder: string, patterns: readonly string[]): Hashes {
  const files = globSync(patterns, { cwd: folder, exclude: ["**/*.test.ts"] }).toSorted();
  return Object.fromEntries(
    files
      .filter((file) => statSync(join(folder, file)).isFile())
      .map((file) => [
        file,
        createHash("sha256")
          .update(readFileSync(join(folder, file)))
          .digest("base64"),
      ]),
  );
}

if (import.meta.main) await buildPage({ always: process.argv.includes("--always") });
