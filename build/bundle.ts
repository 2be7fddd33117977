// Bundles the package for publication. Node spends time on every module it loads, so few modules load faster.
import { cp, glob, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

/**
 * Modules that keep their path in the bundle: the first starts itself as a thread, the second finds files relative to its
 * own path.
 */
const rooted = ["runtime/stores/sqlite/db/checkpointer", "surfaces/cli/demo/demo-command"];

/** The modules that are bundled. */
interface Modules {
  readonly directory: string;
  readonly extension: "js" | "ts";
}

/**
 * Replaces the modules in `root/dist` by a bundle of `modules`. The modules that package.json exports keep their paths.
 * Code that several of them share is in chunks, so that every class exists once. Declaration files stay unchanged.
 *
 * @param modules - Default: the compiled modules in `root/dist`.
 */
export async function bundle(
  root: string,
  modules: Modules = { directory: join(root, "dist"), extension: "js" },
): Promise<void> {
  const dist = join(root, "dist");
  const kernel = join(modules.directory, "kernel", sep);
  const names = [...(await exported(root)), ...rooted];
  const made = await mkdtemp(join(tmpdir(), "reeve-bundle-"));
  try {
    const built = await rolldown({
      input: Object.fromEntries(
        names.map((name) => [name, join(modules.directory, `${name}.${modules.extension}`)]),
      ),
      external: /^[^./]/u,
      platform: "node",
    });
    await built.write({
      dir: made,
      format: "esm",
      entryFileNames: "[name].js",
      chunkFileNames: "chunks/[name]-[hash].js",
      // Nearly every entry uses nearly the whole kernel. Without a group, each set of entries would get its own chunk.
      codeSplitting: { groups: [{ name: "kernel", test: (id) => id.startsWith(kernel) }] },
    });
    await built.close();
    // The modules are replaced, so their source maps would be wrong.
    for await (const file of glob("**/*.{js,js.map}", { cwd: dist })) await rm(join(dist, file));
    await cp(made, dist, { recursive: true });
  } finally {
    await rm(made, { recursive: true, force: true });
  }
}

/** Returns the paths below `dist`, without extension, of the exported modules and of the command. */
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
  // The compiler writes the other files again.
  if (process.argv.includes("--undo"))
    await rm(join(repository, "dist/chunks"), { recursive: true, force: true });
  else await bundle(repository);
}
