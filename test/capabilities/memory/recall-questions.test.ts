import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { Memory } from "../../../src/kernel/index.ts";
import { openMemory } from "../../../src/assembly/memory.ts";

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
});
