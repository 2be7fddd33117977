// The package as it is published: few modules, since Node takes its time for each, whatever is in it.
import { cp, glob, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

/** Those that find a file by their own place keep it; one that starts itself as a thread has a module that has nothing else in it. */
const rooted = ["runtime/stores/sqlite/db/checkpointer", "surfaces/cli/demo/demo-command"];

/**
 * Puts the bundle in the place of the modules that the compiler made of the source, in the package's folder `root`. What the manifest
 * exports stays where it is; what several of them share is in chunks, once, so that there are no two copies of a class. Declarations
 * stay as they are.
 */
export async function bundle(root: string): Promise<void> {
  const dist = join(root, "dist");
  const names = [...(await exported(root)), ...rooted];
  const made = await mkdtemp(join(tmpdir(), "reeve-bundle-"));
  try {
    const built = await rolldown({
      input: Object.fromEntries(names.map((name) => [name, join(dist, `${name}.js`)])),
      external: /^[^./]/u,
      platform: "node",
    });
    await built.write({
      dir: made,
      format: "esm",
      entryFileNames: "[name].js",
      chunkFileNames: "chunks/[name]-[hash].js",
    });
    await built.close();
    // Maps of modules that are not there any more lead nowhere.
    for await (const file of glob("**/*.{js,js.map}", { cwd: dist })) await rm(join(dist, file));
    await cp(made, dist, { recursive: true });
  } finally {
    await rm(made, { recursive: true, force: true });
  }
}

/** What can be imported, and the command: as paths below `dist`, without an ending. */
async function exported(root: string): Promise<readonly string[]> {
  const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, string>>;
    readonly bin: Readonly<Record<string, string>>;
  };
  const paths = [...Object.values(manifest.exports), ...Object.values(manifest.bin)];
  return paths.flatMap((path) => /^\.\/dist\/(.+)\.js$/u.exec(path)?.[1] ?? []);
}

if (import.meta.main) {
  const repository = fileURLToPath(new URL("..", import.meta.url));
  // What the compiler makes again takes the place of the rest.
  if (process.argv.includes("--undo"))
    await rm(join(repository, "dist/chunks"), { recursive: true, force: true });
  else await bundle(repository);
}
