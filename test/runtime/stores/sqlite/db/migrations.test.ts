import { readFileSync } from "node:fs";
import { expect, onTestFinished, test, vi } from "vitest";
import { noUsageDelta } from "../../../../../src/kernel/index.ts";
import { Database } from "../../../../../src/runtime/stores/sqlite/db/database.ts";
import { migrate } from "../../../../../src/runtime/stores/sqlite/db/migrate.ts";
import { createRun } from "../../../../../src/testing/contracts/store-fixtures.ts";
import { delta, ownRunOf, request, spend } from "../../../../../src/testing/contracts/usage-fixtures.ts";
import { fileOfText } from "../../../../golden/file-text.ts";
import { startProcess } from "../store-process.ts";
import { connect, count, newPath, openStore } from "../store-files.ts";

test("a new file gets its tables, Reeve's application id and write-ahead logging", async () => {
  const path = await newPath();
  await (await openStore(path)).close();
  const connection = connect(path);
  expect(connection.prepare("PRAGMA user_version").get()).toEqual({ user_version: 32 });
  expect(connection.prepare("PRAGMA application_id").get()).toEqual({ application_id: 0x52656576 });
  expect(connection.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
});

test("a file of format 28 gets the totals of its months", async () => {
  const path = await newPath();
  const earlier = await openStore(path);
  const days = ["2026-10-31", "2026-11-01", "2026-11-30"];
  await spend(
    earlier,
    "past",
    days.map((day, index) => delta({ day, nanoUsd: 10 ** index })),
  );
  await earlier.close();
  connect(path).exec("DELETE FROM usage_totals WHERE period > 'm'");
  connect(path).exec(
    "DROP TABLE run_scores; ALTER TABLE runs DROP COLUMN scores; DROP INDEX runs_of_host; ALTER TABLE runs DROP COLUMN host; PRAGMA user_version = 28",
  );
  const store = await openStore(path);
  const tight = { name: "perMonthUsd", limit: 120, spent: 110, held: 0 };
  const lease = await ownRunOf(store, "next");
  const drawn = await store.usage.draw(lease, request(11, { perMonthUsd: 120 }));
  expect(drawn).toEqual({ kind: "exhausted", tight });
});

test("several processes can open a new file at the same time", async () => {
  const path = await newPath();
  const processes = await Promise.all(["a", "b", "c"].map((name) => startProcess(path, "open", name)));
  const store = await openStore(path);
  expect(await createRun(store)).toBe("run_a");
  for (const each of processes) await each.kill();
});

test("a process that opens a new file while another one creates its tables finds the work done", async () => {
  const path = await newPath();
  const options = { path, durability: "full", busyLimitMs: 1_000 } as const;
  const [database, other] = [await Database.open(options), await Database.open(options)];
  onTestFinished(() => {
    database.close();
    other.close();
  });
  const schema = { applicationId: 7, tables: "CREATE TABLE notes (text TEXT)", migrations: [] };
  const get = database.get.bind(database);
  let isFirst = true;
  vi.spyOn(database, "get").mockImplementation((sql: string) => {
    const row = get(sql);
    if (isFirst && sql === "PRAGMA application_id") {
      isFirst = false;
      migrate(other, schema);
    }
    return row;
  });
  migrate(database, schema);
  expect(get("PRAGMA user_version")).toEqual({ user_version: 1 });
});

test("opening a file of a newer version fails with a hint to update, and leaves the file unchanged", async () => {
  const path = await newPath();
  await (await openStore(path)).close();
  connect(path).exec("PRAGMA user_version = 999");
  await expect(openStore(path)).rejects.toMatchObject({
    code: "version_mismatch",
    message: expect.stringContaining("update reeve"),
  });
  expect(connect(path).prepare("PRAGMA user_version").get()).toEqual({ user_version: 999 });
});

test("opening the database of another program fails and leaves the database unchanged", async () => {
  const path = await newPath();
  connect(path).exec("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')");
  await expect(openStore(path)).rejects.toMatchObject({ code: "invalid_argument" });
  expect(connect(path).prepare("SELECT name FROM sqlite_schema").all()).toEqual([{ name: "notes" }]);
});

test.each([1, 2, 8])(
  "opening a file of development version %i fails with a hint to delete it, and leaves the file unchanged",
  async (version) => {
    const path = await newPath();
    const connection = connect(path);
    connection.exec(`PRAGMA application_id = 0x52656576; PRAGMA user_version = ${version}`);
    connection.exec("CREATE TABLE commits (id INTEGER PRIMARY KEY, content TEXT)");
    await expect(openStore(path)).rejects.toMatchObject({
      code: "version_mismatch",
      message: expect.stringMatching(/development version of Reeve.+ runs may not have ended.+ move it away/),
    });
    expect(connection.prepare("PRAGMA user_version").get()).toEqual({ user_version: version });
    expect(connection.prepare("SELECT name FROM sqlite_schema").all()).toEqual([{ name: "commits" }]);
  },
);

/** What the tables of a file consist of: their columns in order, and the text of indexes and triggers. */
function schemaOf(path: string): unknown {
  const connection = connect(path);
  const columns = connection
    .prepare(
      `SELECT tables.name AS "table", columns.* FROM sqlite_schema AS tables, pragma_table_xinfo(tables.name) AS columns
       WHERE tables.type = 'table' ORDER BY tables.name, columns.cid`,
    )
    .all();
  const others = connection
    .prepare("SELECT type, name, sql FROM sqlite_schema WHERE type <> 'table' ORDER BY type, name")
    .all();
  return { columns, others };
}

test("a file of the oldest format has the tables of a new file after its migrations", async () => {
  const [path, fresh] = [await newPath(), await newPath()];
  fileOfText(path, readFileSync(new URL("../../../../golden/format-13.sql", import.meta.url), "utf8"));
  for (const each of [path, fresh]) await (await openStore(each)).close();
  expect(schemaOf(path)).toEqual(schemaOf(fresh));
  for (const table of ["freed_changes", "placed"]) expect(count(fresh, table)).toBe(count(path, table));
});

test("a file of format 14 gets the number of entries of each session", async () => {
  const path = await newPath();
  fileOfText(path, readFileSync(new URL("../../../../golden/format-14.sql", import.meta.url), "utf8"));
  const { sessions } = await openStore(path);
  const { sessions: listed } = await sessions.list();
  expect(listed.length).toBeGreaterThan(2);
  for (const { sessionId, entries } of listed)
    expect(entries).toBe((await sessions.read(sessionId, { includeHidden: true })).length);
});

test("a file of format 16 gets the costs of its runs, and the tenants of their labels", async () => {
  const path = await newPath();
  fileOfText(path, readFileSync(new URL("../../../../golden/format-16.sql", import.meta.url), "utf8"));
  const { journal } = await openStore(path);
  const { runs } = await journal.list({ sort: "costliest", limit: 500 });
  const costs = runs.map(({ costUsd }) => costUsd ?? -1);
  expect(costs).toEqual(costs.toSorted((one, other) => other - one));
  expect(costs[0]).toBeGreaterThan(0);
  expect(await journal.count()).toBe(runs.length);
  const { tenants } = connect(path)
    .prepare(
      "SELECT count(*) AS tenants FROM run_labels JOIN runs ON runs.id = run WHERE run_labels.tenant = runs.tenant",
    )
    .get() as { readonly tenants: number };
  expect(tenants).toBe(count(path, "run_labels"));
});

test("the usage in a file of format 16 keeps its days and has no details, and new usage has both", async () => {
  const path = await newPath();
  fileOfText(path, readFileSync(new URL("../../../../golden/format-16.sql", import.meta.url), "utf8"));
  const store = await openStore(path);
  const [old] = await store.usage.sum({ by: "day" });
  if (old === undefined) throw new Error("the golden store has no usage");
  expect(old.runs).toBeGreaterThan(0);
  expect(old.details).toBeNull();
  expect(await store.usage.sum({ by: "hour" })).toEqual([]);
  const runId = await createRun(store, "later");
  await store.leases.enlist("w");
  const lease = await store.leases.seize(runId, "w");
  if (lease === undefined) throw new Error("the run could not be seized");
  const added = { ...noUsageDelta, day: old.key ?? "", hour: 7, agent: "new", model: null, runs: 1 };
  await store.journal.append(lease, { number: 1, at: 2, usage: [added] });
  const [day] = await store.usage.sum({ by: "day" });
  expect([day?.runs, day?.details?.runs, day?.details?.isComplete]).toEqual([old.runs + 1, 1, false]);
  expect((await store.usage.sum({ by: "hour" })).map(({ runs }) => runs)).toEqual([1]);
});

test("migrate() adds new columns to a file of an earlier version and keeps its data", async () => {
  const database = await Database.open({ path: await newPath(), durability: "normal", busyLimitMs: 1_000 });
  onTestFinished(() => database.close());
  const tables = "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')";
  const second = "ALTER TABLE notes ADD COLUMN author TEXT";
  for (const migrations of [[], [second], [second]])
    migrate(database, { applicationId: 7, tables, migrations, oldest: 5 });
  expect(database.all("SELECT * FROM notes")).toEqual([{ text: "mine", author: null }]);
  expect(database.get("PRAGMA user_version")).toEqual({ user_version: 6 });
});
