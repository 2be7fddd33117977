// The kernel as one module, for the package that is published: it is more than half of what importing `reeve` loads.
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const repository = fileURLToPath(new URL("..", import.meta.url));

/**
 * Puts the bundle in the place of the built index, through which every layer imports the kernel and nothing but it. Made from the source, so
 * that doing it twice is doing it once; moved into place, so that whoever imports it meanwhile has one or the other.
 */
export async function bundleKernel(dist: string): Promise<void> {
  const bundle = await rolldown({
    input: join(repository, "src/kernel/index.ts"),
    platform: "neutral",
    treeshake: false,
  });
  const place = join(dist, "kernel/index.js");
  await bundle.write({ file: `${place}.new`, format: "esm" });
  await bundle.close();
  await rename(`${place}.new`, place);
}

if (import.meta.main) await bundleKernel(join(repository, "dist"));
