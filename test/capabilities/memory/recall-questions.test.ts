import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { FullTextMemory, memorySchema } from "../../../src/capabilities/memory/index.ts";
import type { Memory } from "../../../src/kernel/index.ts";
import { openMemory } from "../../../src/assembly/memory.ts";
import { Database } from "../../../src/runtime/stores/sqlite/db/database.ts";
import { migrate } from "../../../src/runtime/stores/sqlite/db/migrate.ts";
import { FakeClock, sequentialIds } from "../../../src/testing/index.ts";

interface QuestionSet {
  readonly notes: readonly { readonly id: string; readonly text: string }[];
  readonly questions: readonly { readonly question: string; readonly note: string }[];
}

/** Sixty questions, each with the note that answers it. Six of them share no word with their note. */
const { notes, questions } = JSON.parse(
  readFileSync(new URL("recall-questions.json", import.meta.url), "utf8"),
) as QuestionSet;

const scope = { userId: "ada" };
const folder = mkdtempSync(join(tmpdir(), "reeve-recall-"));
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));

/** Creates a file as the first version of the tables did, without stemming. */
async function openFirstVersion(path: string): Promise<Memory> {
  const file = await Database.open({ path, durability: "full", busyLimitMs: 1_000 });
  const tables = memorySchema.tables.replaceAll("porter ", "");
  migrate(file, { ...memorySchema, tables, migrations: [] });
  return new FullTextMemory({ file, clock: new FakeClock(), ids: sequentialIds("m") });
}

async function store(memory: Memory): Promise<void> {
  for (const { id, text } of notes) await memory.remember(scope, { type: "episode", id, text });
}

/** Number of questions whose note is among the first five episodes. */
async function foundAtFive(memory: Memory): Promise<number> {
  let found = 0;
  for (const { question, note } of questions) {
    const { episodes } = await memory.recall(scope, { text: question, limit: 5 });
    if (episodes.some(({ id }) => id === note)) found++;
  }
  return found;
}

describe("recall() with stemming", () => {
  test("recall() with stemming finds the note of at least 52 of 60 questions among the first five", async () => {
    expect(questions).toHaveLength(60);
    const memory = await openMemory({ path: join(folder, "new.db") });
    await store(memory);
    expect(await foundAtFive(memory)).toBeGreaterThanOrEqual(52);
    await memory.close();
  });

  test("recall() with stemming finds a fact by another form of its words", async () => {
    const memory = await openMemory({ path: join(folder, "fact.db") });
    const fact = { subject: "Ada", predicate: "prefers", object: "aisle seats" };
    await memory.remember(scope, { type: "fact", fact });
    const { facts } = await memory.recall(scope, { text: "Which seat is preferred?" });
    expect(facts.map(({ object }) => object)).toEqual(["aisle seats"]);
    await memory.close();
  });

  test("openMemory() indexes the entries of an older file again, and Y5: overwrites the old index", async () => {
    const path = join(folder, "old.db");
    const old = await openFirstVersion(path);
    await store(old);
    await old.remember(scope, {
      type: "fact",
      fact: { subject: "Ada", predicate: "plays", object: "xylophones" },
    });
    const before = await foundAtFive(old);
    await old.close();
    const memory = await openMemory({ path });
    const after = await foundAtFive(memory);
    expect(before).toBeLessThan(52);
    expect(after).toBeGreaterThanOrEqual(52);
    expect((await memory.recall(scope, { text: "playing the xylophone" })).facts).toHaveLength(1);
    expect((await memory.recall({ userId: "bob" }, { text: "Ada" })).episodes).toEqual([]);
    await memory.forget(scope);
    await memory.close();
    for (const name of readdirSync(folder).filter((each) => each.startsWith("old.db")))
      expect(readFileSync(join(folder, name)).includes("xylophon")).toBe(false);
  });
});
