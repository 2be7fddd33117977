import { expect, onTestFinished, test, vi } from "vitest";
import { Database } from "../../../../../src/runtime/stores/sqlite/db/database.ts";
import { createTables } from "../../../../../src/runtime/stores/sqlite/db/migrate.ts";
import { createRun } from "../../../../../src/testing/contracts/store-fixtures.ts";
import { startProcess } from "../store-process.ts";
import { connect, newPath, openStore } from "../store-files.ts";

test("a new SQLite file gets its tables, Reeve's application id and write-ahead logging", async () => {
  const path = await newPath();
  await (await openStore(path)).close();
  const connection = connect(path);
  expect(connection.prepare("PRAGMA user_version").get()).toEqual({ user_version: 32 });
  expect(connection.prepare("PRAGMA application_id").get()).toEqual({ application_id: 0x52656576 });
  expect(connection.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
});

test("several processes can open a new SQLite file at the same time", async () => {
  const path = await newPath();
  const processes = await Promise.all(["a", "b", "c"].map((name) => startProcess(path, "open", name)));
  const store = await openStore(path);
  expect(await createRun(store)).toBe("run_a");
  for (const each of processes) await each.kill();
});

test("a process that opens a new SQLite file while another one creates its tables finds them created", async () => {
  const path = await newPath();
  const options = { path, durability: "full", busyLimitMs: 1_000 } as const;
  const [database, other] = [await Database.open(options), await Database.open(options)];
  onTestFinished(() => {
    database.close();
    other.close();
  });
  const schema = { applicationId: 7, tables: "CREATE TABLE notes (text TEXT)", oldest: 1, migrations: [] };
  const get = database.get.bind(database);
  let isFirst = true;
  vi.spyOn(database, "get").mockImplementation((sql: string) => {
    const row = get(sql);
    if (isFirst && sql === "PRAGMA application_id") {
      isFirst = false;
      createTables(other, schema);
    }
    return row;
  });
  createTables(database, schema);
  expect(get("PRAGMA user_version")).toEqual({ user_version: 1 });
});

test("opening a SQLite file of a newer version fails with a hint to update, and leaves the file unchanged", async () => {
  const path = await newPath();
  await (await openStore(path)).close();
  connect(path).exec("PRAGMA user_version = 999");
  await expect(openStore(path)).rejects.toMatchObject({
    code: "version_mismatch",
    message: expect.stringContaining("update reeve"),
  });
  expect(connect(path).prepare("PRAGMA user_version").get()).toEqual({ user_version: 999 });
});

test("opening the SQLite database of another program fails and leaves the database unchanged", async () => {
  const path = await newPath();
  connect(path).exec("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')");
  await expect(openStore(path)).rejects.toMatchObject({ code: "invalid_argument" });
  expect(connect(path).prepare("SELECT name FROM sqlite_schema").all()).toEqual([{ name: "notes" }]);
});

test.each([1, 2, 8, 31])(
  "opening a SQLite file of the development format %i fails with a hint to move it away, and leaves the file unchanged",
  async (version) => {
    const path = await newPath();
    const connection = connect(path);
    connection.exec(`PRAGMA application_id = 0x52656576; PRAGMA user_version = ${version}`);
    connection.exec("CREATE TABLE commits (id INTEGER PRIMARY KEY, content TEXT)");
    await expect(openStore(path)).rejects.toMatchObject({
      code: "version_mismatch",
      message: expect.stringMatching(
        /stored format \d+ of a development version of Reeve, and this version reads format 32.+ runs may not have ended.+ move it away/,
      ),
    });
    expect(connection.prepare("PRAGMA user_version").get()).toEqual({ user_version: version });
    expect(connection.prepare("SELECT name FROM sqlite_schema").all()).toEqual([{ name: "commits" }]);
  },
);

test("opening a SQLite file of an earlier released format fails, and the error names the command that upgrades it", async () => {
  const path = await newPath();
  const database = await Database.open({ path, durability: "normal", busyLimitMs: 1_000 });
  onTestFinished(() => database.close());
  const schema = { applicationId: 7, tables: "CREATE TABLE notes (text TEXT)", oldest: 5, migrations: [] };
  createTables(database, schema);
  const script = "ALTER TABLE notes ADD COLUMN author TEXT";
  const later = { ...schema, migrations: [{ changes: "notes have authors", script }] };
  expect(() => createTables(database, later)).toThrow(
    `${path} has the stored format 5, and this version of Reeve writes format 6; stop the processes that use it, then upgrade it with reeve store upgrade --store "sqlite:${path}"`,
  );
  expect(database.get("PRAGMA user_version")).toEqual({ user_version: 5 });
  expect(database.all("SELECT name FROM pragma_table_info('notes')")).toEqual([{ name: "text" }]);
});
