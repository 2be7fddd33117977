import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { expect, test } from "vitest";
import { repository, run, runNode } from "../gates/run-node.ts";

type Target = string | { readonly [condition: string]: Target };

interface Manifest {
  readonly exports: Readonly<Record<string, Target>>;
}

interface Tarball {
  readonly path: string;
  readonly files: readonly string[];
}

const attw = join(
  dirname(fileURLToPath(import.meta.resolve("@arethetypeswrong/cli/package.json"))),
  "dist/index.js",
);

test("every path in exports is built, with its types, and is packed", async () => {
  const manifest: unknown = JSON.parse(await readFile(join(repository, "package.json"), "utf8"));
  const modules = Object.values((manifest as Manifest).exports).flatMap(paths);
  const files = [...modules, ...modules.filter((path) => path.endsWith(".js")).map(declaration)];
  expect(files).toContain("./dist/index.d.ts");
  expect(await missing(files)).toEqual([]);
  await withTarball(async (tarball) => {
    const packed = new Set(tarball.files.map((file) => `./${file}`));
    expect(files.filter((file) => !packed.has(file))).toEqual([]);
  });
});

test("nothing but the manifest, documents and built code is packed", async () => {
  await withTarball(async ({ files }) => {
    const known = /^(?:package\.json|LICENSE|\w+\.md|dist\/.+\.(?:js|js\.map|d\.ts))$/u;
    expect(files.filter((file) => !known.test(file))).toEqual([]);
  });
});

test("publint has no error and no warning", async () => {
  await withTarball(async ({ path }) => {
    const tarball = new Uint8Array(await readFile(path)).buffer;
    const { messages, pkg } = await publint({ pkgDir: repository, level: "warning", pack: { tarball } });
    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
  });
});

test("the types are right for every way to import the package as ESM", async () => {
  await withTarball(async ({ path }) => {
    const options = ["--profile", "esm-only", "--format", "ascii", "--no-color", "--no-emoji"];
    const { code, stdout } = await runNode([attw, path, ...options], repository);
    expect(stdout).toContain("No problems found");
    expect(code).toBe(0);
  });
});

/** Packs what is built: no script runs, so nothing is built under the feet of another test. */
async function withTarball(use: (tarball: Tarball) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-pack-"));
  try {
    const args = ["pack", "--ignore-scripts", "--json", "--pack-destination", folder];
    const { stdout } = await run("npm", args, repository);
    const [packed] = JSON.parse(stdout) as readonly {
      readonly filename: string;
      readonly files: readonly { readonly path: string }[];
    }[];
    if (packed === undefined) throw new Error("npm packed nothing");
    await use({ path: join(folder, packed.filename), files: packed.files.map(({ path }) => path) });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function missing(files: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(
    files.map((file) =>
      stat(join(repository, file)).then(
        (stats) => stats.isFile(),
        () => false,
      ),
    ),
  );
  return files.filter((_, index) => !found[index]);
}

function paths(target: Target): readonly string[] {
  return typeof target === "string" ? [target] : Object.values(target).flatMap(paths);
}

function declaration(path: string): string {
  return path.replace(/\.js$/u, ".d.ts");
}
