import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openStore } from "../../src/entries/index.ts";
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

/** Groups findings by run and kind, so that a difference in a test names its place. */
function grouped(findings: readonly Finding[]): Readonly<Record<string, readonly unknown[]>> {
  const groups: Record<string, unknown[]> = {};
  for (const { run, what, value } of findings) (groups[`${run}: ${what}`] ??= []).push(value);
  return groups;
}

/**
 * If one of these tests fails, existing files can no longer be read: see docs/why/journal.md, "Files of earlier versions".
 */
describe.for(golden)("J9: the golden journal %s", (name) => {
  const all = findingsOfText(read(name.replace(/sql$/u, "jsonl")));
  const known = (...whats: readonly string[]) => grouped(all.filter(({ what }) => whats.includes(what)));

  test("a golden journal is read with the recorded events, runs and a valid hash chain", async () => {
    const found = await findingsIn(fileOf(read(name)));
    expect(grouped(found)).toEqual(known("event", "verdict", "listed"));
  });

  test("resuming a golden journal gives the recorded output, seats and money without repeating a recorded call", async () => {
    const found = await findingsAfter(fileOf(read(name)));
    expect(grouped(found)).toEqual(known("standing", "result", "ledger", "asked", "afterwards"));
  });
});

test("J9: a golden journal of the current file format exists; if it is missing, create it with npm run golden", async () => {
  const path = join(folder, "today.db");
  await (await openStore(`sqlite:${path}`)).close();
  const today = formatOf(textOfFile(path));
  const formats = golden.map((name) => formatOf(read(name)));
  expect(
    formats,
    `there is no golden journal of today's format ${today}; create it with: npm run golden`,
  ).toContain(today);
});

test("J9: a modified golden journal is detected by the hash chain and by journal_mismatch", async () => {
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
