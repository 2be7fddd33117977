import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { expect, inject, onTestFinished, test } from "vitest";
import { isPageCurrent } from "../../build/page.ts";
import { isFull } from "../effort.ts";
import { repository, runNode } from "../gates/run-node.ts";
import { filesMatching } from "./documents.ts";

type Target = string | { readonly [condition: string]: Target };

const manifest = JSON.parse(await readFile(join(repository, "package.json"), "utf8")) as {
  readonly exports: Readonly<Record<string, Target>>;
};
const targets = Object.values(manifest.exports).flatMap(paths);
const declarations = targets
  .filter((path) => path.endsWith(".js"))
  .map((path) => path.replace(/\.js$/u, ".d.ts"));

const { file: packedFile, project, before, after } = inject("installed");
const packed = await filesBelow(join(project, "node_modules/reeve"));
const advice = await publishAdvice(packedFile);

test("npm pack leaves every file of the clone as it was, the built page included", () => {
  expect(before.length).toBeGreaterThan(1_500);
  expect(before).toContainEqual(expect.stringMatching(/^dist\/page\/assets\/index-\S+\.js \d/u));
  expect(after).toEqual(before);
});

test("the page is built again if one of its files is missing or differs, or a source has changed", async () => {
  const dist = await mkdtemp(join(tmpdir(), "reeve-page-"));
  onTestFinished(() => rm(dist, { recursive: true, force: true, maxRetries: 10 }));
  const copy = (name: string): Promise<void> =>
    cp(join(repository, "dist", name), join(dist, name), { recursive: true });
  expect(isPageCurrent(dist)).toBe(false);
  await copy("page");
  await copy("page.json");
  expect(isPageCurrent(dist)).toBe(true);
  const script = join(dist, "page/after-paint.js");
  await rm(script);
  expect(isPageCurrent(dist)).toBe(false);
  await writeFile(script, "");
  expect(isPageCurrent(dist)).toBe(false);
  await copy("page");
  const built = JSON.parse(await readFile(join(dist, "page.json"), "utf8")) as Record<"sources", object>;
  expect(Object.keys(built.sources)).toContain("web/index.html");
  await writeFile(
    join(dist, "page.json"),
    JSON.stringify({ ...built, sources: { ...built.sources, "web/index.html": "other" } }),
  );
  expect(isPageCurrent(dist)).toBe(false);
});

test("the tarball contains the files of the built page as they are", async () => {
  const built = await filesBelow(join(repository, "dist/page"));
  expect(built).toContainEqual(expect.stringMatching(/^assets\/later-views-.+\.js$/u));
  for (const name of built)
    expect(await readFile(join(project, "node_modules/reeve/dist/page", name))).toEqual(
      await readFile(join(repository, "dist/page", name)),
    );
});

test("every path in exports and its types are in the tarball", () => {
  expect(targets).toContain("./dist/entries/index.js");
  expect(packed.map((file) => `./${file}`)).toEqual(expect.arrayContaining([...targets, ...declarations]));
});

test("the tarball contains only the manifest, documents, examples, the page, built code and its licences", () => {
  const known =
    /^(?:package\.json|settings\.schema\.json|LICENSE|\w+\.md|docs\/(?!notes\/).+\.md|examples\/(?:[\w-]+\/)?[\w-]+\.(?:ts|py|md)|examples\/first-steps\/workspace\/.+|dist\/.+\.(?:js|d\.ts)|dist\/bundled-licences\.txt|dist\/page\/.+)$/u;
  expect(packed.filter((file) => !known.test(file))).toEqual([]);
});

test("the tarball contains the changelog, every page of docs except the design notes, and every example", async () => {
  const found = await filesMatching([
    "CHANGELOG.md",
    "docs/**/*.md",
    "examples/*.md",
    "examples/*/*.{md,ts,py}",
  ]);
  const pages = found.filter((page) => !page.startsWith("docs/notes/"));
  expect(pages.length).toBeGreaterThan(20);
  expect(packed).toEqual(expect.arrayContaining([...pages]));
});

test("publint reports no error and no warning", () => {
  expect(advice).toEqual([]);
});

test.each(["--module nodenext", "--module esnext --moduleResolution bundler"])(
  "every path in exports resolves to types with %s",
  async (options) => {
    const modules = Object.keys(manifest.exports).filter((path) => !path.endsWith(".json"));
    const lines = modules.map((path, at) => `export * as e${at} from "reeve${path.slice(1)}";`);
    const program = join(project, `exports-${options.length}.ts`);
    onTestFinished(() => rm(program));
    await writeFile(program, lines.join("\n"));
    const tsc = join(repository, "node_modules/typescript/bin/tsc");
    const common = "--noEmit --target es2024 --strict --skipLibCheck --pretty false".split(" ");
    const { stdout } = await runNode([tsc, ...options.split(" "), ...common, program], project);
    expect(stdout).toBe("");
  },
);

test.runIf(isFull)("arethetypeswrong finds types for ESM programs and for bundlers", async () => {
  const types = await typeResolutions(packedFile);
  expect(types.code).toBe(0);
  expect(types.resolutions).toHaveLength(2 * targets.length);
  expect(types.resolutions.filter((resolution) => !resolution.includes(": OK"))).toEqual([]);
});

/** Paths of all files below a folder, with `/` on every system. */
async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)).replaceAll("\\", "/"));
}

async function publishAdvice(path: string): Promise<readonly string[]> {
  const tarball = new Uint8Array(await readFile(path)).buffer;
  const { messages, pkg } = await publint({ level: "warning", pack: { tarball } });
  return messages.map((message) => formatMessage(message, pkg, { color: false }) ?? message.code);
}

async function typeResolutions(path: string) {
  const cli = dirname(fileURLToPath(import.meta.resolve("@arethetypeswrong/cli/package.json")));
  const options = ["--profile", "esm-only", "--format", "ascii", "--no-color", "--no-emoji"];
  const { code, stdout } = await runNode([join(cli, "dist/index.js"), path, ...options], repository);
  return { code, resolutions: stdout.match(/^(?:node16 \(from ESM\)|bundler): .*$/gmu) ?? [] };
}

function paths(target: Target): readonly string[] {
  return typeof target === "string" ? [target] : Object.values(target).flatMap(paths);
}
