import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const packages = fileURLToPath(new URL("../node_modules/", import.meta.url));

/**
 * Returns the path of Chromium. The package unpacks itself into the temporary folder, which takes 3 s of processor time
 * and 215 MB, so that all test files share one copy.
 */
export async function chromiumPath(): Promise<string> {
  const manifest = join(packages, "@sparticuz/chromium/package.json");
  const { version } = JSON.parse(await readFile(manifest, "utf8")) as { readonly version: string };
  const cache = join(packages, ".cache");
  const shared = join(cache, `chromium-${version}`);
  if (!existsSync(shared)) {
    await mkdir(cache, { recursive: true });
    await unpack(await mkdtemp(join(cache, "unpacking-")), shared);
  }
  return join(shared, "chromium");
}

/** Unpacks Chromium into the folder `fresh` and renames it to `shared`, unless another process was faster. */
async function unpack(fresh: string, shared: string): Promise<void> {
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
