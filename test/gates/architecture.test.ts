import { glob, readFile } from "node:fs/promises";
import { globSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "./run-node.ts";

const architecture = await readFile(join(repository, "docs/contributing/architecture.md"), "utf8");
const sections = sectionsOf(await readFile(join(repository, "docs/why/promises.md"), "utf8"));
/**
 * The codes of traps that the page names besides promises. A trap is a contradiction in the documents from which Reeve
 * started.
 */
const trap = /^(?:R(?:1?\d|2[01])|O[1-8])$/u;

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

test("every promise of docs/why/promises.md is in a file or folder in which its section says that it is declared", async () => {
  expect(sections.length).toBeGreaterThan(12);
  const wrong: string[] = [];
  for (const { places, promises } of sections) {
    const texts = await Promise.all(filesOf(places).map((file) => readFile(join(repository, file), "utf8")));
    for (const promise of promises)
      if (!texts.some((text) => new RegExp(`\\b${promise}\\b`, "u").test(text)))
        wrong.push(`${promise} in ${places.join(", ")}`);
  }
  expect(wrong).toEqual([]);
});

test("every promise that the title of a test cites has a row in docs/why/promises.md", async () => {
  const cited = await citedPromises();
  expect(cited.size).toBeGreaterThan(100);
  const known = new Set(sections.flatMap(({ promises }) => promises));
  expect([...cited].filter((promise) => !known.has(promise) && !trap.test(promise)).toSorted()).toEqual([]);
});

test("the gate for promises reads sections of the index, and promises in titles", () => {
  const page =
    "# Index\n\n## J: the journal\n\nThe promises of this section are declared in `src/a.ts`, `src/b/`.\n\n| J1 | One |\n| J2 | Two |\n\n### J again\n\nThe promises of this section are declared in `src/c.ts`.\n\n| J1 | More |\n";
  expect(sectionsOf(page)).toEqual([
    { places: ["src/a.ts", "src/b/"], promises: ["J1", "J2"] },
    { places: ["src/c.ts"], promises: ["J1"] },
  ]);
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

interface PromiseSection {
  /** The files and folders that declare the promises of the section. */
  readonly places: readonly string[];
  readonly promises: readonly string[];
}

/** The sections of the index of promises that say where their promises are declared. */
function sectionsOf(markdown: string): readonly PromiseSection[] {
  return markdown.split(/^###? /mu).flatMap((section) => {
    const [, declared] = /^The promises of this section are declared in (.+)$/mu.exec(section) ?? [];
    if (declared === undefined) return [];
    const promises = [...section.matchAll(/^\| ([A-Z]{1,2}\d{1,2}) \|/gmu)].map(
      ([, promise = ""]) => promise,
    );
    const places = [...declared.matchAll(/`([^`]+)`/gu)].map(([, place = ""]) => place);
    return [{ places, promises }];
  });
}

/** Returns the files of places. A place that ends with a slash is a folder. */
function filesOf(places: readonly string[]): readonly string[] {
  return places.flatMap((place) =>
    place.endsWith("/") ? globSync(`${place}**/*.ts`, { cwd: repository }) : [place],
  );
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
