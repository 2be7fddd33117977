import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import { onTestFinished } from "vitest";
import type { Store } from "../../../../src/kernel/index.ts";
import { sha256 } from "../../../../src/runtime/process/sha256.ts";
import { sqliteStore, type SqliteStoreOptions } from "../../../../src/runtime/stores/sqlite/store.ts";

/** Returns a path in a new folder that is removed when the test ends. */
export async function newPath(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-sqlite-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return join(folder, "store.db");
}

/** Opens a store that is closed when the test ends. */
export async function openStore(
  path: string,
  options: Partial<Omit<SqliteStoreOptions, "path">> = {},
): Promise<Store> {
  const store = await sqliteStore({ path, hash: sha256, watchEveryMs: 5, ...options });
  onTestFinished(() => store.close());
  return store;
}

/** Opens a second connection to the file, like the `sqlite3` shell does. */
export function connect(path: string): DatabaseSync {
  const connection = new DatabaseSync(path);
  onTestFinished(() => {
    if (connection.isOpen) connection.close();
  });
  return connection;
}

export function count(path: string, table: string): number {
  const connection = new DatabaseSync(path);
  const row = connection.prepare(`SELECT count(*) AS count FROM ${table}`).get();
  connection.close();
  return Number(row?.["count"]);
}

/** Waits until the condition holds, for at most two minutes. Checks it once per turn of the event loop. */
export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const end = performance.now() + 120_000;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`timed out after 120 s: expected that ${what}`);
    await setImmediate();
  }
}

/** Counts the turns of the event loop until the work has settled. */
export async function turnsDuring(work: Promise<unknown>): Promise<number> {
  const state = { isSettled: false };
  const settled = work.then(
    () => undefined,
    () => undefined,
  );
  void settled.finally(() => {
    state.isSettled = true;
  });
  let turns = 0;
  for (; !state.isSettled; turns++) await setImmediate();
  return turns;
}
