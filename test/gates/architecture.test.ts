import { glob, readFile } from "node:fs/promises";
import { globSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { pathsIn } from "./document-names.ts";
import { repository } from "./run-node.ts";

const architecture = await readFile(join(repository, "docs/contributing/architecture.md"), "utf8");
const index = indexOf(architecture);

test("docs/contributing/architecture.md has a row for every layer of src and every folder of agents, runtime, surfaces and web", () => {
  const folders = [
    "src",
    "src/agents",
    "src/runtime",
    "src/kernel",
    "src/capabilities",
    "src/surfaces",
    "web",
  ]
    .flatMap((parent) => globSync(`${parent}/*/`, { cwd: repository }))
    .map((folder) => folder.replaceAll("\\", "/").replace(/\/$/u, ""));
  expect(folders.length).toBeGreaterThan(50);
  expect(folders.filter((folder) => !architecture.includes(`| \`${folder}/\``))).toEqual([]);
});

test("the path of a prompt in docs/contributing/architecture.md has at most 45 files, each once", () => {
  const rows = sectionOf(architecture, "The path of a prompt").matchAll(/^\| \d+ \| (?:-> )?`([^`]+)` \|/gmu);
  const files = [...rows].map(([, file]) => file);
  expect(files.length).toBeGreaterThan(30);
  expect(files.length).toBeLessThanOrEqual(45);
  expect(new Set(files).size).toBe(files.length);
});

test("every file of the index of promises contains a promise of its letter", async () => {
  expect(index.size).toBeGreaterThan(20);
  const wrong: string[] = [];
  for (const [letter, files] of index)
    for (const file of files) if (!(await numbersIn(file, letter)).size) wrong.push(`${letter} in ${file}`);
  expect(wrong).toEqual([]);
});

test("every promise that the title of a test cites is in a file that the index lists for its letter", async () => {
  const cited = await citedPromises();
  expect(cited.size).toBeGreaterThan(100);
  const known = new Set<string>();
  for (const [letter, files] of index)
    for (const file of files)
      for (const number of await numbersIn(file, letter)) known.add(`${letter}${number}`);
  expect([...cited].filter((promise) => !known.has(promise)).toSorted()).toEqual([]);
});

test("the gate reads rows of the index, and promises in titles", () => {
  const table = "## Promises\n\n| J | The journal | `src/a.ts`, `src/b.ts` |\n| J | More | `src/c.ts` |\n";
  expect([...indexOf(table)]).toEqual([["J", ["src/a.ts", "src/b.ts", "src/c.ts"]]]);
  expect(promisesIn('test("J1, K2 and SK3: a title", …); test(`L1-L3: x`)')).toEqual([
    "J1",
    "K2",
    "SK3",
    "L1",
    "L2",
    "L3",
  ]);
});

function sectionOf(markdown: string, heading: string): string {
  return markdown.split(/^## /mu).find((part) => part.startsWith(`${heading}\n`)) ?? "";
}

/** The files of each letter, as the table of the section "Promises" lists them. A letter may have several rows. */
function indexOf(markdown: string): ReadonlyMap<string, readonly string[]> {
  const files = new Map<string, readonly string[]>();
  const rows = sectionOf(markdown, "Promises").matchAll(/^\| ([A-Z]{1,2}) \|.*\|([^|]+)\|$/gmu);
  for (const [, letter = "", cell = ""] of rows)
    files.set(letter, [...(files.get(letter) ?? []), ...pathsIn(cell)]);
  return files;
}

/** The numbers of a letter that a file names. */
async function numbersIn(file: string, letter: string): Promise<ReadonlySet<number>> {
  const text = await readFile(join(repository, file), "utf8");
  const named = text.matchAll(new RegExp(`\\b${letter}(\\d{1,2})\\b`, "gu"));
  return new Set([...named].map(([, number]) => Number(number)));
}

/** The promises with which the titles of all tests begin. */
async function citedPromises(): Promise<ReadonlySet<string>> {
  const cited = new Set<string>();
  const files = ["test/**/*.ts", "src/testing/**/*.ts", "web/**/*.test.{ts,tsx}"];
  for await (const file of glob(files, { cwd: repository }))
    for (const promise of promisesIn(await readFile(join(repository, file), "utf8"))) cited.add(promise);
  return cited;
}

/** The promises at the beginning of texts, such as `J1, K2: ...` and `L1-L4: ...`. */
function promisesIn(source: string): readonly string[] {
  const titles = source.matchAll(/["'`]([A-Z]{1,2}\d{1,2}(?:(?:, | and | to |-)[A-Z]{1,2}\d{1,2})*):/gu);
  return [...titles].flatMap(([, list = ""]) =>
    list.split(/, | and /u).flatMap((item) => {
      const [, letter = "", first, last = first] = /^([A-Z]+)(\d+)(?:\D+(\d+))?$/u.exec(item) ?? [];
      const numbers = Array.from({ length: Number(last) - Number(first) + 1 }, (_, at) => Number(first) + at);
      return numbers.map((number) => `${letter}${number}`);
    }),
  );
}
