import { expect, test } from "vitest";
import { createRun, ownRun } from "../../../../src/testing/store-fixtures.ts";
import { startProcess } from "./store-process.ts";
import { connect, newPath, openStore } from "./store-files.ts";

test("a new file gets its tables and says whose they are", async () => {
  const path = await newPath();
  await (await openStore(path)).close();
  const connection = connect(path);
  expect(connection.prepare("PRAGMA user_version").get()).toEqual({ user_version: 2 });
  expect(connection.prepare("PRAGMA application_id").get()).toEqual({ application_id: 0x52656576 });
  expect(connection.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
});

test("several processes may open a new file at once", async () => {
  const path = await newPath();
  const processes = await Promise.all(["a", "b", "c"].map((name) => startProcess(path, "open", name)));
  const store = await openStore(path);
  expect(await createRun(store)).toBe("run_a");
  for (const each of processes) await each.kill();
});

test("the file of a newer version is refused with what to do, and left as it is", async () => {
  const path = await newPath();
  await (await openStore(path)).close();
  connect(path).exec("PRAGMA user_version = 999");
  await expect(openStore(path)).rejects.toMatchObject({
    code: "version_mismatch",
    message: expect.stringContaining("update reeve"),
  });
  expect(connect(path).prepare("PRAGMA user_version").get()).toEqual({ user_version: 999 });
});

test("the database of another program is refused and left as it is", async () => {
  const path = await newPath();
  connect(path).exec("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')");
  await expect(openStore(path)).rejects.toMatchObject({ code: "invalid_argument" });
  expect(connect(path).prepare("SELECT name FROM sqlite_schema").all()).toEqual([{ name: "notes" }]);
});

test("the second migration leaves the runs there are, and those that ended are listed as ended", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await ownRun(store);
  await store.leases.release(lease, { kind: "ended" });
  await store.close();
  downgrade(path);
  const { runs } = await (await openStore(path)).journal.list();
  expect(runs.map(({ runId, status }) => [runId, status])).toEqual([["run_a", "completed"]]);
});

/** Takes the second migration back. No release has left such a file: the first was still changed after the second was there. */
function downgrade(path: string): void {
  const connection = connect(path);
  for (const name of ["of_session", "of_agent", "of_tenant", "by_end", "erasing", "by_age_of_end"])
    connection.exec(`DROP INDEX runs_${name}`);
  connection.exec(
    "DROP INDEX mail_of_submits; DROP INDEX entries_visible; ALTER TABLE commits DROP COLUMN seal",
  );
  for (const column of ["user_id", "ended", "ended_at", "erases", "erasing"])
    connection.exec(`ALTER TABLE runs DROP COLUMN ${column}`);
  connection.exec("PRAGMA user_version = 1");
}
