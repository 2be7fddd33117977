import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, extname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { repository } from "./run-node.ts";

const maxFiles = 40;
const maxLines = 600;
/** A shorter file deserves a name of its own only if at least two files import it. */
const minLines = 40;
const sourceTypes: ReadonlySet<string> = new Set([".ts", ".tsx"]);

/** Files that no other file imports: the program of the command line, and the scripts that `web/index.html` loads. */
const programs: ReadonlySet<string> = new Set([
  "src/surfaces/cli/main.ts",
  "web/after-paint.ts",
  "web/main.tsx",
]);

/** A source file: its path from the repository and its text. */
interface Source {
  readonly file: string;
  readonly text: string;
}

async function sourcesIn(...folders: readonly string[]): Promise<readonly Source[]> {
  const found = await Promise.all(
    folders.map(async (folder) => {
      const files = await readdir(join(repository, folder), { recursive: true });
      return files.filter((file) => sourceTypes.has(extname(file))).map((file) => join(folder, file));
    }),
  );
  return Promise.all(
    found.flat().map(async (file) => ({ file, text: await readFile(join(repository, file), "utf8") })),
  );
}

const sources = await sourcesIn("src", "web");
/** Everything that may import a source file. */
const importers = [...sources, ...(await sourcesIn("test", "bench", "examples", "build"))];

/** The folders that hold more files than `limit`. */
function fullFolders(files: readonly string[], limit: number): readonly (readonly [string, number])[] {
  const folders = Map.groupBy(files, (file) => dirname(file));
  return [...folders].map(([folder, held]) => [folder, held.length] as const).filter(([, n]) => n > limit);
}

/** Number of lines of a text, blank lines and comments included. */
function linesOf(text: string): number {
  return text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}

/** The imports of a file: what it names in `from` or `import()`, as paths from the repository. */
function importsOf({
  file,
  text,
}: Source): readonly { readonly path: string; readonly isOnDemand: boolean }[] {
  const code = text.replaceAll(/\/\*.*?\*\//gsu, "");
  const named = code.matchAll(/\bfrom "(?<path>\.[^"]+)"|\bimport\(\s*"(?<demanded>\.[^"]+)"/gu);
  return [...named].map(({ groups }) => ({
    path: normalize(join(dirname(file), groups?.["path"] ?? groups?.["demanded"] ?? "")),
    isOnDemand: groups?.["demanded"] !== undefined,
  }));
}

/**
 * The files below `minLines` lines that only one file imports. An index stands for all importers of its folder. Entries,
 * programs and files that are loaded on demand may be small.
 */
function smallFiles(files: readonly Source[], among: readonly Source[]): readonly string[] {
  const imports = among.flatMap((source) => importsOf(source).map((each) => ({ ...each, by: source.file })));
  const byPath = Map.groupBy(imports, ({ path }) => path);
  return files
    .filter(({ file, text }) => {
      const imported = byPath.get(file) ?? [];
      return (
        linesOf(text) < minLines &&
        !/\.test\.tsx?$/u.test(file) &&
        !programs.has(file) &&
        dirname(file) !== "src/entries" &&
        basename(file) !== "index.ts" &&
        new Set(imported.map(({ by }) => by)).size < 2 &&
        !imported.some(({ by, isOnDemand }) => isOnDemand || basename(by) === "index.ts")
      );
    })
    .map(({ file }) => file);
}

/**
 * Returns the child of `place` that contains a file: a folder, or the file itself. `undefined` if the file is elsewhere.
 */
function roomOf(place: string, file: string): string | undefined {
  return file.startsWith(`${place}/`) ? file.slice(place.length + 1).split("/")[0] : undefined;
}

/** Returns the folders of `place` that import each other in a circle, also through a file beside these folders. */
function circleIn(place: string, files: readonly Source[]): readonly string[] {
  const arrows = new Map<string, Set<string>>();
  for (const source of files) {
    const from = roomOf(place, source.file);
    if (from === undefined) continue;
    const targets = arrows.get(from) ?? new Set();
    arrows.set(from, targets);
    for (const { path } of importsOf(source)) {
      const to = roomOf(place, path);
      if (to !== undefined && to !== from) targets.add(to);
    }
  }
  return [...arrows.keys()].filter((room) => !room.includes(".") && reachedFrom(room, arrows).has(room));
}

function reachedFrom(room: string, arrows: ReadonlyMap<string, ReadonlySet<string>>): ReadonlySet<string> {
  const reached = new Set(arrows.get(room));
  for (const each of reached) for (const next of arrows.get(each) ?? []) reached.add(next);
  return reached;
}

const isSource = ({ file }: Source): boolean => !/\.test\.tsx?$/u.test(file);

test(`no folder of src and web holds more than ${maxFiles} files`, () => {
  const files = sources.map(({ file }) => file);
  expect(new Set(files.map((file) => dirname(file))).size).toBeGreaterThan(30);
  expect(fullFolders(files, maxFiles)).toEqual([]);
});

test(`no file of src and web has more than ${maxLines} lines, comments and blank lines included`, () => {
  const lengths = sources.map(({ file, text }) => [file, linesOf(text)] as const);
  expect(lengths.filter(([, lines]) => lines === 0)).toEqual([]);
  expect(lengths.filter(([, lines]) => lines > maxLines)).toEqual([]);
});

test(`a file of src and web below ${minLines} lines has two importers, is loaded on demand, or is an entry`, () => {
  expect(smallFiles(sources, importers)).toEqual([]);
});

test("no folders of src and web import each other in a circle", () => {
  const folders = new Set(
    sources.flatMap(({ file }) =>
      file
        .split("/")
        .slice(0, -1)
        .map((_, end, parts) => parts.slice(0, end + 1).join("/")),
    ),
  );
  expect(
    [...folders]
      .map((place) => [place, circleIn(place, sources.filter(isSource))])
      .filter(([, circle]) => circle?.length !== 0),
  ).toEqual([]);
});

test("the gate for the layout counts every line of a file and every file of a folder", () => {
  expect(linesOf("one\n\n// three\n")).toBe(3);
  expect(linesOf("one\ntwo")).toBe(2);
  const files = Array.from({ length: maxFiles + 1 }, (_, index) => `src/full/file-${index}.ts`);
  expect(fullFolders([...files, "src/other/file.ts"], maxFiles)).toEqual([["src/full", maxFiles + 1]]);
});

test("the gate for the layout finds a small file with one importer and a circle of folders", () => {
  const small = { file: "src/a/small.ts", text: "export const small = 1;\n" };
  const by = (file: string, text: string): Source => ({ file, text });
  const once = by("src/b/user.ts", `import { small } from "../a/small.ts";\n`);
  expect(smallFiles([small], [once])).toEqual(["src/a/small.ts"]);
  expect(
    smallFiles([small], [once, by("src/c/user.ts", `import { small } from "../a/small.ts";\n`)]),
  ).toEqual([]);
  expect(smallFiles([small], [by("src/b/user.ts", `await import("../a/small.ts");\n`)])).toEqual([]);
  expect(circleIn("src", [small, once])).toEqual([]);
  const back = by("src/a/back.ts", `export { user } from "../c/middle.ts";\n`);
  const middle = by("src/c/middle.ts", `export { user } from "../b/user.ts";\n`);
  expect(
    circleIn("src", [
      small,
      once,
      back,
      middle,
      by("src/d/end.ts", `export { user } from "../b/user.ts";\n`),
    ]),
  ).toEqual(["a", "b", "c"]);
  const part = by("src/e/part.ts", `import { whole } from "../whole.ts";\n`);
  const whole = by(
    "src/whole.ts",
    `import { part } from "./e/part.ts";\nimport { end } from "./f/end.ts";\n`,
  );
  expect(circleIn("src", [part, whole, by("src/f/end.ts", "")])).toEqual(["e"]);
});

/** Code with real input and output, which no simulation runs: it decides which store is loaded, or reaches a server. */
const hasRealIo = /^src\/runtime\/(?:(?:open|upgrade)-store\.ts|stores\/(?:sqlite|postgres)\/|engines\/)/u;
/** An import on demand: the time at which it is complete follows from the machine, and not from a seed. */
const importsOnDemand = /(?<![.\w])import\(\s*["'`]|\bawait import\(/u;

test("the code that a simulation runs imports no module on demand", () => {
  expect(importsOnDemand.test("const found = await import(name);")).toBe(true);
  const simulated = sources.filter(({ file }) => /^src\/(?:kernel|agents|runtime)\//u.test(file));
  expect(simulated.length).toBeGreaterThan(400);
  const found = simulated.filter(({ file, text }) => !hasRealIo.test(file) && importsOnDemand.test(text));
  expect(found.map(({ file }) => file)).toEqual([]);
});
