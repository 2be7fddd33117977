import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openStore } from "../../src/index.ts";
import { findingsAfter, findingsIn, findingsOfText, type Finding } from "./account.ts";
import { fileOfText, formatOf, textOfFile } from "./file-text.ts";

const here = import.meta.dirname;
const golden = readdirSync(here).filter((name) => name.endsWith(".sql"));

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-golden-"));
});
afterEach(() => rm(folder, { recursive: true }));

function fileOf(text: string): string {
  const path = join(folder, "golden.db");
  fileOfText(path, text);
  return path;
}

function read(name: string): string {
  return readFileSync(join(here, name), "utf8");
}

/** By run and what it is, so that a difference says where it is. */
function grouped(findings: readonly Finding[]): Readonly<Record<string, readonly unknown[]>> {
  const groups: Record<string, unknown[]> = {};
  for (const { run, what, value } of findings) (groups[`${run}: ${what}`] ??= []).push(value);
  return groups;
}

/** If one of these fails, files that are out there cannot be read so any more: docs/journal.md, "Files of earlier versions". */
describe.for(golden)("J9: the golden journal %s", (name) => {
  const all = findingsOfText(read(name.replace(/sql$/u, "jsonl")));
  const known = (...whats: readonly string[]) => grouped(all.filter(({ what }) => whats.includes(what)));

  test("says what it said: events, who is listed, and a chain that holds", async () => {
    const found = await findingsIn(fileOf(read(name)));
    expect(grouped(found)).toEqual(known("event", "verdict", "listed"));
  });

  test("is gone on with: the same output, seats and money, and no recorded call asked for again", async () => {
    const found = await findingsAfter(fileOf(read(name)));
    expect(grouped(found)).toEqual(known("standing", "result", "ledger", "asked", "afterwards"));
  });
});

test("J9: there is a golden journal of the files that are written today; if not, npm run golden makes it", async () => {
  const path = join(folder, "today.db");
  await (await openStore(`sqlite:${path}`)).close();
  const today = formatOf(textOfFile(path));
  const formats = golden.map((name) => formatOf(read(name)));
  expect(formats, `of format ${today}, the one that is written now; make it with: npm run golden`).toContain(
    today,
  );
});

test("J9: a journal that is read as something else than it was is found", async () => {
  const [name = ""] = golden;
  const text = read(name);
  const path = fileOf(text.replace('["1","llm","main"', '["1","llm","mien"'));
  const verdicts = (await findingsIn(path)).filter(({ what }) => what === "verdict");
  expect(verdicts.filter(({ value }) => (value as { readonly ok: boolean }).ok)).toHaveLength(
    verdicts.length - 1,
  );

  await rm(path);
  const other = fileOf(text.replaceAll('"step","note"', '"step","nota"'));
  const halted = (await findingsAfter(other)).find(({ run, what }) => run === "halted" && what === "result");
  expect(halted?.value).toMatchObject({ status: "failed", error: { code: "journal_mismatch" } });
});
