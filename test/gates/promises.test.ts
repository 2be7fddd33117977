import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { filesMatching } from "../package/documents.ts";
import { repository } from "./run-node.ts";

const letters = "[BCDEFGHIJKLMNPQRSTUVWXYZ]|SK";

/** Codes of the promises that a source declares, such as `J6: ...` or `- P4 ...`, in a comment. Traps are no promises. */
function declarations(source: string): readonly string[] {
  const places = new RegExp(
    `(?<![Tt]rap )\\b((?:${letters})\\d+):\\s|^\\s*\\* - ((?:${letters})\\d+) `,
    "gmu",
  );
  return [...source.matchAll(places)].map(([, inline, listed]) => inline ?? listed ?? "");
}

/** Codes that have a row in a table of the index. */
function listedRows(page: string): readonly string[] {
  return [...page.matchAll(new RegExp(`^\\| ((?:${letters})\\d+) \\| [^|\\s]`, "gmu"))].map(
    ([, code = ""]) => code,
  );
}

test("docs/why/promises.md has a row for each promise that the source declares, and no other", async () => {
  const codes = new Set<string>();
  for (const file of await filesMatching(["src/**/*.ts"]))
    for (const code of declarations(await readFile(join(repository, file), "utf8"))) codes.add(code);
  const rows = new Set(listedRows(await readFile(join(repository, "docs/why/promises.md"), "utf8")));
  expect(rows.size).toBeGreaterThan(150);
  expect([...codes].filter((code) => !rows.has(code)).toSorted()).toEqual([]);
  expect([...rows].filter((code) => !codes.has(code)).toSorted()).toEqual([]);
});

test("the gate for promises finds both forms of a declaration and leaves traps out", () => {
  expect(declarations("/** J6: key. */\n * - P4 Mail to a run.\n// (Trap) trap R10: no\n")).toEqual([
    "J6",
    "P4",
  ]);
  expect(listedRows("| J6 | Effects |\n| X |\n| J7 | |\n")).toEqual(["J6"]);
});
