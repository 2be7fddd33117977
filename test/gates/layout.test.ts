import { readdir, readFile } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "./run-node.ts";

const maxFiles = 40;
const maxLines = 600;
const sourceTypes: ReadonlySet<string> = new Set([".ts", ".tsx"]);

/** The source files below `src` and `web`, as paths from the repository. */
async function sources(): Promise<readonly string[]> {
  const found = await Promise.all(
    ["src", "web"].map(async (folder) => {
      const files = await readdir(join(repository, folder), { recursive: true });
      return files.filter((file) => sourceTypes.has(extname(file))).map((file) => join(folder, file));
    }),
  );
  return found.flat();
}

/** The folders that hold more files than `limit`. */
function fullFolders(files: readonly string[], limit: number): readonly (readonly [string, number])[] {
  const folders = Map.groupBy(files, (file) => dirname(file));
  return [...folders].map(([folder, held]) => [folder, held.length] as const).filter(([, n]) => n > limit);
}

/** Number of lines of a text, blank lines and comments included. */
function linesOf(text: string): number {
  return text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}

test(`no folder of src and web holds more than ${maxFiles} files`, async () => {
  const files = await sources();
  expect(new Set(files.map((file) => dirname(file))).size).toBeGreaterThan(30);
  expect(fullFolders(files, maxFiles)).toEqual([]);
});

test(`no file of src and web has more than ${maxLines} lines, comments and blank lines included`, async () => {
  const files = await sources();
  const lengths = await Promise.all(
    files.map(async (file) => [file, linesOf(await readFile(join(repository, file), "utf8"))] as const),
  );
  expect(lengths.filter(([, lines]) => lines === 0)).toEqual([]);
  expect(lengths.filter(([, lines]) => lines > maxLines)).toEqual([]);
});

test("the gate counts every line of a file and every file of a folder", () => {
  expect(linesOf("one\n\n// three\n")).toBe(3);
  expect(linesOf("one\ntwo")).toBe(2);
  const files = Array.from({ length: maxFiles + 1 }, (_, index) => `src/full/file-${index}.ts`);
  expect(fullFolders([...files, "src/other/file.ts"], maxFiles)).toEqual([["src/full", maxFiles + 1]]);
});
