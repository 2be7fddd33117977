// Bundles the package for publication. Node spends time on every module it loads, so few modules load faster.
import { existsSync, statSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

/**
 * Modules that keep their path in the bundle: the first starts itself as a thread, the second finds files relative to its
 * own path.
 */
const rooted = ["runtime/stores/sqlite/db/checkpointer", "surfaces/cli/demo/demo-command"];

/**
 * Packages that the bundle contains, with the packages that they need, so that `reeve chat` works after a plain install. Each
 * is a development dependency of the clone (docs/notes/command-line.md#the-chat-draws-with-pi-tui). All other packages are dependencies of the published one.
 */
export const bundledPackages = ["@earendil-works/pi-tui", "get-east-asian-width", "marked"] as const;

/** Whether an import is left to the packages that are installed with the published one. */
function isExternal(name: string): boolean {
  return (
    /^[^./]/u.test(name) && !bundledPackages.some((each) => name === each || name.startsWith(`${each}/`))
  );
}

/** The package of a module below `node_modules`. `undefined` for another module. */
function packageOf(module: string): string | undefined {
  return /.*[/\\]node_modules[/\\]((?:@[^/\\]+[/\\])?[^/\\]+)/u.exec(module)?.[1]?.replaceAll("\\", "/");
}

/** The modules that are bundled. */
interface Modules {
  readonly directory: string;
  readonly extension: "js" | "ts";
}

/**
 * Writes a bundle of `modules` to the folder `target`. The modules that the manifest of `repository` exports keep their
 * paths. Code that several of them share is in chunks, so that every class exists once. Returns the packages of which the bundle
 * contains code.
 */
export async function bundle(
  repository: string,
  target: string,
  { directory, extension }: Modules,
): Promise<ReadonlySet<string>> {
  const kernel = join(directory, "kernel", sep);
  const names = [...(await exported(repository)), ...rooted];
  const built = await rolldown({
    input: Object.fromEntries(names.map((name) => [name, join(directory, `${name}.${extension}`)])),
    external: isExternal,
    platform: "node",
    // Without a comment that names each module, the package is 60 kB smaller.
    experimental: { attachDebugInfo: "none" },
  });
  const { output } = await built.write({
    dir: target,
    format: "esm",
    // Editors show the comments of the declarations. Without a copy of them the package is a megabyte smaller.
    comments: { legal: true, annotation: true, jsdoc: false },
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name]-[hash].js",
    // Nearly every entry uses nearly the whole kernel. Without a group, each set of entries would get its own chunk.
    codeSplitting: { groups: [{ name: "kernel", test: (id) => id.startsWith(kernel) }] },
  });
  await built.close();
  const modules = output.flatMap((each) => (each.type === "chunk" ? each.moduleIds : []));
  return new Set(modules.map(packageOf).filter((name) => name !== undefined));
}

/**
 * Writes the published form of `repository/dist` to the folder `target`: the bundle instead of the modules and their
 * source maps, the declarations that the exports use, and the page as it is. `repository/dist` stays unchanged.
 */
export async function writePublished(repository: string, target: string): Promise<void> {
  const dist = join(repository, "dist");
  const declarations = await usedDeclarations(dist, await exported(repository));
  const filter = (path: string): boolean =>
    statSync(path).isDirectory() || declarations.has(path) || relative(dist, path).startsWith(`page${sep}`);
  await cp(dist, target, { recursive: true, preserveTimestamps: true, filter });
  await removeEmptyFolders(target);
  const found = await bundle(repository, target, { directory: dist, extension: "js" });
  const unlisted = [...found].filter((name) => !bundledPackages.some((each) => each === name));
  if (unlisted.length > 0)
    throw new Error(
      `the bundle contains code of ${unlisted.join(", ")}; add each to bundledPackages of build/bundle.ts, so that its licence is published`,
    );
  await writeFile(join(target, "bundled-licences.txt"), await noticeOf(repository));
}

/** The paths of the declarations of these modules, and of all that they import. */
async function usedDeclarations(dist: string, modules: readonly string[]): Promise<ReadonlySet<string>> {
  const used = new Set(modules.map((name) => join(dist, `${name}.d.ts`)));
  // A set yields what is added while it is read.
  for (const path of used) {
    const text = await readFile(path, "utf8");
    for (const [, name = ""] of text.matchAll(/["'](\.{1,2}\/[^"']+)\.(?:js|ts)["']/gu)) {
      const imported = join(dirname(path), `${name}.d.ts`);
      if (existsSync(imported)) used.add(imported);
    }
  }
  return used;
}

async function removeEmptyFolders(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true });
  for (const entry of entries) if (entry.isDirectory()) await removeEmptyFolders(join(folder, entry.name));
  if ((await readdir(folder)).length === 0) await rmdir(folder);
}

/**
 * The licences of the code of others in the package, which require that their texts come with every copy: the packages of the bundle,
 * and the libraries and fonts of the page. The list of prices has its licence at its beginning.
 */
async function noticeOf(repository: string): Promise<string> {
  const page = ["libraries-licences.txt", "fonts-licence.txt"].map(async (name) => {
    const text = await readFile(join(repository, "dist/page", name), "utf8");
    return `dist/page/${name}\n\n${text.trim()}\n`;
  });
  const notices = bundledPackages.map(async (name) => {
    const folder = folderOf(repository, name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as {
      readonly version: string;
      readonly license: string;
    };
    const file = (await readdir(folder)).find((each) => /^licen[cs]e(?:\.\w+)?$/iu.test(each));
    // The package of pi-tui has no file with its licence. It is that of its repository.
    const path = file === undefined ? join(repository, "build/pi-tui-licence.txt") : join(folder, file);
    return `${name} ${version} (${license})\n\n${(await readFile(path, "utf8")).trim()}\n`;
  });
  const texts = await Promise.all([...notices, ...page]);
  return `This folder contains code and fonts of others, under the following licences.\n\n${texts.join("\n\n")}`;
}

/** Where a package is installed: npm puts it beside its only user if another version has the first place. */
function folderOf(repository: string, name: string): string {
  const modules = join(repository, "node_modules");
  const nested = join(modules, bundledPackages[0], "node_modules", name);
  return existsSync(nested) ? nested : join(modules, name);
}

/** Returns the paths below `dist`, without extension, of the exported modules and of the command. */
async function exported(repository: string): Promise<readonly string[]> {
  const manifest = JSON.parse(await readFile(join(repository, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, string>>;
    readonly bin: Readonly<Record<string, string>>;
  };
  const paths = [...Object.values(manifest.exports), ...Object.values(manifest.bin)];
  return paths.flatMap((path) => /^\.\/dist\/(.+)\.js$/u.exec(path)?.[1] ?? []);
}

/** The folders of a clone between `prepack` and `postpack`. npm packs only the folder in which it was started. */
function packing(clone: string) {
  const folder = join(clone, "release");
  return { folder, dist: join(clone, "dist"), made: join(folder, "dist"), kept: join(folder, "clone-dist") };
}

/** Puts the published form of `dist` in its place and keeps the clone's own. The clone must have been built. */
async function swapIn(clone: string): Promise<void> {
  const { dist, made, kept } = packing(clone);
  await rm(made, { recursive: true, force: true });
  await mkdir(made, { recursive: true });
  await writePublished(clone, made);
  await rename(dist, kept);
  await rename(made, dist);
}

/** Puts the clone's own `dist` back, also after a process that ended while it packed. Does nothing if it is in its place. */
async function swapOut(clone: string): Promise<void> {
  const { folder, dist, made, kept } = packing(clone);
  if (existsSync(kept)) {
    await rm(dist, { recursive: true, force: true });
    await rename(kept, dist);
  }
  await rm(made, { recursive: true, force: true });
  await rmdir(folder).catch((error: unknown) => {
    // The folder may also contain what `npm run release:check` wrote.
    if (!["ENOENT", "ENOTEMPTY"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  });
}

if (import.meta.main) {
  const clone = fileURLToPath(new URL("..", import.meta.url));
  if (process.argv.includes("--undo")) await swapOut(clone);
  else await swapIn(clone);
}
