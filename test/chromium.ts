import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installSystemPackage } from "./system-package.ts";

const packages = fileURLToPath(new URL("../node_modules/", import.meta.url));

/** Programs of the system's packages. The first needs a quarter less processor time, because it is built for tests only. */
const programs = ["chromium-headless-shell", "chromium"] as const;

/**
 * Finds the Chromium of the tests: the one that REEVE_CHROMIUM names, the one of the package `@sparticuz/chromium`,
 * which exists for x64 only, or one in the PATH. Returns `undefined` if there is none.
 */
function findChromium(): string | undefined {
  const chosen = process.env["REEVE_CHROMIUM"];
  if (chosen !== undefined) return isProgram(chosen) ? chosen : undefined;
  if (process.arch === "x64") return join(unpackedFolder(), "chromium");
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return programs.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram);
}

/** Why the tests that need a browser are skipped. `undefined` if they run, because Chromium is here or CI installs it. */
export function missingChromium(): string | undefined {
  if (findChromium() !== undefined || process.env["CI"] !== undefined) return undefined;
  return `no Chromium is installed, and npm has none for ${process.arch}: install it (Debian: apt install ${programs[0]}), or set REEVE_CHROMIUM to its path`;
}

/** Returns the path of Chromium. */
export async function chromiumPath(): Promise<string> {
  const path = findChromium();
  if (path === undefined) throw new Error(missingChromium() ?? "Chromium could not be installed");
  if (path.startsWith(unpackedFolder()) && !existsSync(path)) await unpack();
  return path;
}

/** Prepares Chromium before the tests of a project. Installs it from the system's packages if it is missing and CI is set. */
export async function setup(): Promise<void> {
  if (findChromium() === undefined) {
    const failure = await installSystemPackage(programs[0]);
    if (failure !== undefined) throw new Error(`Chromium could not be installed with apt-get: ${failure}`);
  }
  await chromiumPath();
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The folder into which the package of npm is unpacked. */
function unpackedFolder(): string {
  const manifest = join(packages, "@sparticuz/chromium/package.json");
  const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { readonly version: string };
  return join(packages, ".cache", `chromium-${version}`);
}

/**
 * Unpacks the Chromium of npm. The package unpacks itself into the temporary folder, which takes 3 s of processor time
 * and 215 MB, so that all test files share one copy. Several projects may unpack at the same time; the first one wins.
 */
async function unpack(): Promise<void> {
  const shared = unpackedFolder();
  await mkdir(dirname(shared), { recursive: true });
  const fresh = await mkdtemp(join(dirname(shared), "unpacking-"));
  const before = process.env["TMPDIR"];
  process.env["TMPDIR"] = fresh;
  try {
    const { default: chromium } = await import("@sparticuz/chromium");
    await chromium.executablePath();
    await rename(fresh, shared);
  } catch (error) {
    if (!existsSync(join(shared, "chromium"))) throw error;
  } finally {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
    await rm(fresh, { recursive: true, force: true });
  }
}
