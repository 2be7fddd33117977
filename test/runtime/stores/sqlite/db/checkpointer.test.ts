import { statSync } from "node:fs";
import { expect, test } from "vitest";
import { Checkpointer } from "../../../../../src/runtime/stores/sqlite/db/checkpointer.ts";
import { connect, newPath, until } from "../store-files.ts";

test("a Checkpointer writes the SQLite log into the file in another thread, and close() waits for it", async () => {
  const path = await newPath();
  const connection = connect(path);
  connection.exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (x)");
  connection.exec(
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO t SELECT randomblob(1000) FROM n",
  );
  const before = statSync(path).size;
  const checkpointer = new Checkpointer(path);
  checkpointer.note(100);
  checkpointer.note(100_000_000);
  await until(() => statSync(path).size > before + 1_000_000, "the file has grown");
  checkpointer.note(100_000_000);
  await checkpointer.close();
  await checkpointer.close();
  const row = connection.prepare("PRAGMA wal_checkpoint(PASSIVE)").get();
  expect(row?.["checkpointed"]).toBe(row?.["log"]);
});

test("close() of a Checkpointer resolves at once when it never had work", async () => {
  await expect(new Checkpointer(await newPath()).close()).resolves.toBeUndefined();
});
