import { readFileSync } from "node:fs";
import { afterAll, describe, expect, inject, test } from "vitest";
import type { Memory } from "../../src/kernel/index.ts";
import { openMemory } from "../../src/assembly/memory.ts";
import { FakeClock, sequentialIds } from "../../src/testing/index.ts";
import { memoryContract } from "../../src/testing/contracts/index.ts";
import { newSchema, query } from "./schemas.ts";

interface QuestionSet {
  readonly notes: readonly { readonly id: string; readonly text: string }[];
  readonly questions: readonly { readonly question: string; readonly note: string }[];
}

const schema = newSchema();
const scope = { userId: "ada" };
const opened: Memory[] = [];
afterAll(() => Promise.all(opened.map((memory) => memory.close())));

function urlOf(name: string): string {
  return `${inject("postgresUrl")}?schema=${name}`;
}

async function open(name: string, ids = "m"): Promise<{ memory: Memory; clock: FakeClock }> {
  const clock = new FakeClock();
  const memory = await openMemory({ url: urlOf(name), clock, ids: sequentialIds(ids) });
  opened.push(memory);
  return { memory, clock };
}

/** Counts the rows of the tables that hold what was remembered. */
async function rowsIn(name: string): Promise<number> {
  const tables = ["scopes", "blocks", "episodes", "facts"];
  const counts = tables.map((table) => `(SELECT count(*) FROM ${name}.${table})`).join(" + ");
  const [row] = (await query(`SELECT (${counts})::integer AS count`)) as readonly {
    readonly count: number;
  }[];
  return row?.count ?? -1;
}

describe("PostgresMemory", () => {
  let shared: Promise<{ memory: Memory; clock: FakeClock }> | undefined;
  memoryContract({
    test,
    expect,
    open: async () => {
      const { memory, clock } = await (shared ??= open(schema));
      await query(`TRUNCATE ${schema}.scopes, ${schema}.blocks, ${schema}.episodes, ${schema}.facts`);
      return { memory, clock };
    },
  });

  test("recall() of PostgresMemory finds the note of at least 52 of 60 questions among the first five", async () => {
    const file = new URL("../capabilities/memory/recall-questions.json", import.meta.url);
    const { notes, questions } = JSON.parse(readFileSync(file, "utf8")) as QuestionSet;
    const { memory } = await open(newSchema());
    await Promise.all(notes.map(({ id, text }) => memory.remember(scope, { type: "episode", id, text })));
    const found = await Promise.all(
      questions.map(async ({ question, note }) => {
        const { episodes } = await memory.recall(scope, { text: question, limit: 5 });
        return episodes.some(({ id }) => id === note);
      }),
    );
    expect(found.filter(Boolean).length).toBeGreaterThanOrEqual(52);
  });

  test("Y3: two processes share a PostgresMemory, and one fact is valid after both have written at once", async () => {
    const name = newSchema();
    const [one, two] = await Promise.all([open(name, "one"), open(name, "two")]);
    const fact = (object: string) =>
      ({ type: "fact", fact: { subject: "Ada", predicate: "lives in", object } }) as const;
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 === 0 ? one : two).memory.remember(scope, fact(`city ${index}`)),
      ),
    );
    const { facts } = await one.memory.recall(scope, { text: "" });
    expect(facts).toHaveLength(1);
  });

  test("Y5: forget() of PostgresMemory removes every row of the scope, in chunks", async () => {
    const name = newSchema();
    const { memory } = await open(name);
    await memory.remember(scope, { type: "block", block: { name: "style", text: "brief" } });
    await query(
      `INSERT INTO ${name}.episodes (scope, id, text, at, words, size)
       SELECT id, n::text, 'note', n, to_tsvector('simple', 'note'), 1 FROM ${name}.scopes, generate_series(1, 2500) AS n`,
    );
    expect(await memory.forget(scope)).toBe(2_501);
    expect(await rowsIn(name)).toBe(0);
  });

  test("Y5: opening a PostgresMemory removes what a dead process had forgotten and not yet deleted", async () => {
    const name = newSchema();
    const { memory } = await open(name);
    await memory.remember(scope, { type: "episode", text: "the word is xylophonist" });
    await memory.remember({ userId: "bob" }, { type: "episode", text: "stays" });
    await query(`UPDATE ${name}.scopes SET key = NULL WHERE key LIKE '["ada"%'`);
    expect((await memory.recall(scope, { text: "xylophonist" })).episodes).toEqual([]);
    const { memory: again } = await open(name);
    await expect.poll(() => rowsIn(name)).toBe(2);
    expect((await again.recall({ userId: "bob" }, { text: "stay" })).episodes).toHaveLength(1);
  });

  test("remember() of PostgresMemory stores texts with U+0000, long words, long subjects and very many words", async () => {
    const { memory } = await open(newSchema());
    const texts = [
      "zero \u0000 byte",
      "x".repeat(5_000),
      Array.from({ length: 90_000 }, (_, n) => `w${n}`).join(" "),
    ];
    for (const text of texts) await memory.remember(scope, { type: "episode", text });
    const subject = `subject ${Array.from({ length: 2_000 }, (_, n) => n).join(" ")}`;
    await memory.remember(scope, { type: "fact", fact: { subject, predicate: "is", object: "long" } });
    await memory.remember(scope, { type: "fact", fact: { subject, predicate: "is", object: "longer" } });
    const { episodes } = await memory.recall(scope, { text: "w17" });
    expect(episodes.map(({ text }) => text)).toEqual([texts[2]]);
    expect((await memory.recall(scope, { text: "byte" })).episodes[0]?.text).toBe(texts[0]);
    expect((await memory.recall(scope, { text: "subject" })).facts.map(({ object }) => object)).toEqual([
      "longer",
    ]);
  });

  test("a search in PostgresMemory reads the index of words, and not the rows of other scopes", async () => {
    const name = newSchema();
    const { memory } = await open(name);
    await memory.remember(scope, { type: "episode", text: "train to Blois" });
    await query(
      `INSERT INTO ${name}.episodes (scope, id, text, at, words, size)
       SELECT 1000 + n % 50, n::text, 'train', n, array_to_tsvector(ARRAY['train', 'scope:' || (1000 + n % 50)]), 1
       FROM generate_series(1, 20000) AS n`,
    );
    await query(`VACUUM ANALYZE ${name}.episodes`);
    const plan = (await query(
      `EXPLAIN SELECT 1 FROM ${name}.episodes WHERE words @@ '''scope:1'' & (''train'' | ''bloi'')'::tsquery`,
    )) as readonly Readonly<Record<string, string>>[];
    expect(JSON.stringify(plan)).toContain("episodes_words");
    expect((await memory.recall(scope, { text: "trains" })).episodes).toHaveLength(1);
  });

  test("openMemory() refuses a path together with a URL, another kind of URL, and tables of a newer version", async () => {
    const name = newSchema();
    await expect(openMemory({ url: urlOf(name), path: "m.db" })).rejects.toThrow("set path or url, not both");
    await expect(openMemory({ url: "mysql://db/x" })).rejects.toThrow("invalid url of openMemory()");
    await open(name);
    await query(`UPDATE ${name}.memory_meta SET version = 99`);
    await expect(openMemory({ url: urlOf(name) })).rejects.toMatchObject({ code: "version_mismatch" });
  });
});
