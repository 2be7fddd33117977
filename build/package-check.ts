// What has to be true of the packed file and of the tree in which it is installed.
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { bundledPackages } from "./bundle.ts";
import { allowedLicences } from "./installed-tree.ts";

/** The files that the package may contain. */
const known =
  /^(?:package\.json|settings\.schema\.json|LICENSE|\w+\.md|docs\/(?!notes\/).+\.(?:md|svg)|examples\/(?:[\w-]+\/)?[\w-]+\.(?:ts|py|md)|examples\/first-steps\/workspace\/.+|dist\/.+\.(?:js|d\.ts)|dist\/bundled-licences\.txt|dist\/page\/.+)$/u;
/** Files without which the package is not complete. */
const needed = ["package.json", "LICENSE", "README.md", "CHANGELOG.md", "dist/bundled-licences.txt"];

type Target = string | { readonly [condition: string]: Target };

/** The manifest of the package. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly exports: Readonly<Record<string, Target>>;
  readonly bin: Readonly<Record<string, string>>;
}

/** The paths to which a manifest directs imports. */
export function targetsOf({ exports }: Pick<Manifest, "exports">): readonly string[] {
  const paths = (target: Target): readonly string[] =>
    typeof target === "string" ? [target] : Object.values(target).flatMap(paths);
  return Object.values(exports).flatMap(paths);
}

/** Paths of all files below a folder, with `/` on every system. Packages that are installed in it are left out. */
export async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)).replaceAll("\\", "/"))
    .filter((path) => !path.startsWith("node_modules/"));
}

/** Files that do not belong in the package, and files that it lacks. */
export function contentProblems(files: readonly string[], manifest: Manifest): readonly string[] {
  const targets = [...targetsOf(manifest), ...Object.values(manifest.bin)].map((path) => path.slice(2));
  const types = targetsOf(manifest)
    .filter((path) => path.endsWith(".js"))
    .map((path) => path.slice(2).replace(/\.js$/u, ".d.ts"));
  const there = new Set(files);
  return [
    ...files.filter((file) => !known.test(file)).map((file) => `the package contains ${file}`),
    ...[...needed, ...targets, ...types]
      .filter((file) => !there.has(file))
      .map((file) => `the package lacks ${file}`),
  ];
}

/** What publint finds in a packed file. */
export async function publishAdvice(file: string): Promise<readonly string[]> {
  const tarball = new Uint8Array(await readFile(file)).buffer;
  const { messages, pkg } = await publint({ level: "warning", pack: { tarball } });
  return messages.map((message) => formatMessage(message, pkg, { color: false }) ?? message.code);
}

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program of Node to its end. */
function runNode(args: readonly string[], cwd: string): Promise<Ended> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { cwd, maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code;
      if (typeof code === "number") resolve({ code, stdout, stderr });
      else reject(error ?? new Error(`node ${args.join(" ")} has not ended`));
    });
  });
}

/** Paths that have no types for ESM programs of Node or for bundlers, as "Are the types wrong?" sees a packed file. */
export async function resolutionProblems(
  file: string,
  manifest: Manifest,
  cwd: string,
): Promise<readonly string[]> {
  const cli = dirname(fileURLToPath(import.meta.resolve("@arethetypeswrong/cli/package.json")));
  const options = ["--profile", "esm-only", "--format", "ascii", "--no-color", "--no-emoji"];
  const { code, stdout } = await runNode([join(cli, "dist/index.js"), file, ...options], cwd);
  const found = stdout.match(/^(?:node16 \(from ESM\)|bundler): .*$/gmu) ?? [];
  const expected = 2 * targetsOf(manifest).length;
  return [
    ...(code === 0 ? [] : [`attw ends with code ${code}`]),
    ...(found.length === expected ? [] : [`attw resolves ${found.length} paths; expected ${expected}`]),
    ...found.filter((resolution) => !resolution.includes(": OK")),
  ];
}

/** The ways in which programs resolve packages. */
export const resolutions = [
  "--module node16 --moduleResolution node16",
  "--module nodenext",
  "--module esnext --moduleResolution bundler",
] as const;

/** What the compiler says about a program that imports every path of a package, in each way of resolution. */
export async function consumerProblems(tree: string, repository: string): Promise<readonly string[]> {
  const manifest = await manifestOf(tree);
  const consumer = join(dirname(tree), "consumer");
  const modules = join(consumer, "node_modules");
  await mkdir(join(modules, "@types"), { recursive: true });
  await symlink(tree, join(modules, manifest.name));
  for (const types of ["node", "react"])
    await symlink(join(repository, "node_modules/@types", types), join(modules, "@types", types));
  await writeFile(join(consumer, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const paths = Object.keys(manifest.exports).filter((path) => !path.endsWith(".json"));
  const lines = paths.map((path, at) => `export * as e${at} from "${manifest.name}${path.slice(1)}";`);
  await writeFile(join(consumer, "program.ts"), lines.join("\n"));
  const tsc = join(repository, "node_modules/typescript/bin/tsc");
  const common = "--noEmit --target es2024 --strict --skipLibCheck --types node --pretty false program.ts";
  const found: string[] = [];
  for (const options of resolutions) {
    const { code, stdout } = await runNode([tsc, ...options.split(" "), ...common.split(" ")], consumer);
    if (code !== 0) found.push(`tsc ${options}: ${stdout.trim()}`);
  }
  await rm(consumer, { recursive: true });
  return found;
}

/** What is wrong with the notice of the code of others: a missing package, or a licence that is not allowed. */
export function noticeProblems(notice: string): readonly string[] {
  const licensed = [...notice.matchAll(/^(?:## )?(@?[\w./-]+) (?:- )?\d[\w.-]* \(([^()]+)\)$/gmu)];
  const names = new Set(licensed.map(([, name = ""]) => name));
  const libraries = ["preact", "@preact/signals", "@preact/signals-core"];
  return [
    ...[...bundledPackages, ...libraries]
      .filter((name) => !names.has(name))
      .map((name) => `dist/bundled-licences.txt lacks ${name}`),
    ...(notice.includes("SIL OPEN FONT LICENSE")
      ? []
      : ["dist/bundled-licences.txt lacks that of the fonts"]),
    ...licensed
      .filter(([, , licence = ""]) => !allowedLicences.includes(licence))
      .map(([, name, licence]) => `${name}, which is bundled, has the licence ${licence}`),
  ];
}

/**
 * What is wrong when the installed command upgrades, lists and verifies the golden store of each promised format. `folder` receives
 * the stores.
 */
export async function goldenProblems(
  tree: string,
  repository: string,
  folder: string,
): Promise<readonly string[]> {
  const command = join(tree, (await manifestOf(tree)).bin["reeve"] ?? "");
  const golden = (await readdir(join(repository, "test/golden"))).filter((name) => name.endsWith(".sql"));
  const found = golden.length === 0 ? ["there is no golden store"] : [];
  for (const name of golden) {
    const path = join(folder, name.replace(/sql$/u, "db"));
    const text = await readFile(join(repository, "test/golden", name), "utf8");
    const database = new DatabaseSync(path);
    database.exec(`BEGIN;\n${text}\nCOMMIT;`);
    database.close();
    const runs = text.match(/^INSERT INTO runs VALUES/gmu)?.length ?? 0;
    const reeve = (...args: string[]): Promise<Ended> =>
      runNode([command, ...args, "--store", `sqlite:${path}`], folder);
    for (const args of [
      ["store", "upgrade"],
      ["audit", "verify"],
    ]) {
      const { code, stderr } = await reeve(...args);
      if (code !== 0)
        found.push(`reeve ${args.join(" ")} of ${name} ends with code ${code}: ${stderr.trim()}`);
    }
    const { stdout } = await reeve("ps", "--all", "--limit", "500", "--json");
    const listed = stdout.trim().split("\n").length;
    if (listed !== runs) found.push(`reeve ps lists ${listed} of ${runs} runs of ${name}`);
  }
  return found;
}

export async function manifestOf(tree: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(tree, "package.json"), "utf8")) as Manifest;
}
