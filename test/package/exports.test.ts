import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import {
  contentProblems,
  filesBelow,
  manifestOf,
  publishAdvice,
  resolutionProblems,
  resolutions,
  targetsOf,
} from "../../build/package-check.ts";
import { isPageCurrent } from "../../build/page.ts";
import { isFull } from "../effort.ts";
import { repository, runNode } from "../gates/run-node.ts";
import { filesMatching } from "./documents.ts";

const manifest = await manifestOf(repository);
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

test("the tarball contains every path in exports with its types, and no file of an unexpected kind", () => {
  expect(targetsOf(manifest)).toContain("./dist/entries/index.js");
  expect(contentProblems(packed, manifest)).toEqual([]);
});

test("contentProblems() names files that do not belong in the package, and files that it lacks", () => {
  const files = packed.filter((file) => file !== "dist/entries/index.d.ts");
  expect(contentProblems([...files, "docs/notes/money.md", ".env"], manifest)).toEqual([
    "the package contains docs/notes/money.md",
    "the package contains .env",
    "the package lacks dist/entries/index.d.ts",
  ]);
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

test.each(resolutions)(
  "every path in exports resolves to types with TypeScript's module option %s",
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
  expect(await resolutionProblems(packedFile, manifest, repository)).toEqual([]);
});
