import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { expect, inject, test } from "vitest";
import { repository, run, runNode } from "../gates/run-node.ts";
import { filesMatching } from "./documents.ts";

type Target = string | { readonly [condition: string]: Target };

interface Tarball {
  readonly path: string;
  readonly files: readonly string[];
}

const manifest = JSON.parse(await readFile(join(repository, "package.json"), "utf8")) as {
  readonly exports: Readonly<Record<string, Target>>;
};
const targets = Object.values(manifest.exports).flatMap(paths);
const declarations = targets
  .filter((path) => path.endsWith(".js"))
  .map((path) => path.replace(/\.js$/u, ".d.ts"));

const { packed, advice, types } = await withTarball(async ({ path, files }) => ({
  packed: files,
  advice: await publishAdvice(path),
  types: await typeResolutions(path),
}));

test("every path in exports and its types are built", async () => {
  const built = (await readdir(join(repository, "dist"), { recursive: true })).map(
    (file) => `./dist/${file}`,
  );
  expect(targets).toContain("./dist/entries/index.js");
  expect(["./package.json", ...built]).toEqual(expect.arrayContaining([...targets, ...declarations]));
});

test("every path in exports and its types are in the tarball", () => {
  expect(packed.map((file) => `./${file}`)).toEqual(expect.arrayContaining([...targets, ...declarations]));
});

test("the tarball contains only the manifest, documents, examples, the page and built code", () => {
  const known =
    /^(?:package\.json|settings\.schema\.json|LICENSE|\w+\.md|docs\/.+\.md|examples\/[\w-]+\.ts|examples\/workspace\/.+|dist\/.+\.(?:js|d\.ts)|dist\/page\/.+)$/u;
  expect(packed.filter((file) => !known.test(file))).toEqual([]);
});

test("the tarball contains the changelog, every page of docs and every example", async () => {
  const pages = await filesMatching(["CHANGELOG.md", "docs/**/*.md", "examples/*.ts"]);
  expect(pages.length).toBeGreaterThan(20);
  expect(packed).toEqual(expect.arrayContaining([...pages]));
});

test("publint reports no error and no warning", () => {
  expect(advice).toEqual([]);
});

test("every path in exports resolves to types for ESM programs and for bundlers", () => {
  expect(types.code).toBe(0);
  expect(types.resolutions).toHaveLength(2 * targets.length);
  expect(types.resolutions.filter((resolution) => !resolution.includes(": OK"))).toEqual([]);
});

/** Packs the published package without running scripts, so that no build disturbs a concurrent test. */
async function withTarball<Result>(use: (tarball: Tarball) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-pack-"));
  try {
    const args = ["pack", "--ignore-scripts", "--json", "--pack-destination", folder];
    const { stdout, stderr } = await run("npm", args, inject("builtPackage"));
    const [tarball] = JSON.parse(stdout) as readonly {
      readonly filename: string;
      readonly files: readonly { readonly path: string }[];
    }[];
    if (tarball === undefined) throw new Error(`npm packed nothing: ${stderr}`);
    return await use({
      path: join(folder, tarball.filename),
      files: tarball.files.map(({ path }) => path),
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function publishAdvice(path: string): Promise<readonly string[]> {
  const tarball = new Uint8Array(await readFile(path)).buffer;
  const { messages, pkg } = await publint({ level: "warning", pack: { tarball } });
  return messages.map((message) => formatMessage(message, pkg, { color: false }) ?? message.code);
}

async function typeResolutions(path: string) {
  const cli = dirname(fileURLToPath(import.meta.resolve("@arethetypeswrong/cli/package.json")));
  const options = ["--profile", "esm-only", "--format", "ascii", "--no-color", "--no-emoji"];
  // Runs while the file is collected, so the timeout of a test does not apply.
  const { code, stdout } = await runNode([join(cli, "dist/index.js"), path, ...options], repository);
  return { code, resolutions: stdout.match(/^(?:node16 \(from ESM\)|bundler): .*$/gmu) ?? [] };
}

function paths(target: Target): readonly string[] {
  return typeof target === "string" ? [target] : Object.values(target).flatMap(paths);
}
