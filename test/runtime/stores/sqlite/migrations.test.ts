import { expect, test } from "vitest";
import { createRun } from "../../../../src/testing/store-fixtures.ts";
import { startProcess } from "./store-process.ts";
import { connect, newPath, openStore } from "./store-files.ts";

test("a new file gets its tables and says whose they are", async () => {
  const path = await newPath();
  await (await openStore(path)).close();
  const connection = connect(path);
  expect(connection.prepare("PRAGMA user_version").get()).toEqual({ user_version: 1 });
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
