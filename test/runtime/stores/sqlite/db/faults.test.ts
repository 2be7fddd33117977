import { execFile } from "node:child_process";
import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Commit, JsonValue, Lease, Store } from "../../../../../src/kernel/index.ts";
import { sha256 } from "../../../../../src/runtime/process/sha256.ts";
import { Database } from "../../../../../src/runtime/stores/sqlite/db/database.ts";
import { storeOn } from "../../../../../src/runtime/stores/sqlite/store.ts";
import { all, createRun, ownRun, stepRecord } from "../../../../../src/testing/contracts/store-fixtures.ts";
import { connect, newPath, openStore, turnsDuring } from "../store-files.ts";

/** Opens a store and exposes its connection, so that a test can simulate a full disk or a read-only file. */
async function setup(): Promise<{ path: string; database: Database; store: Store; lease: Lease }> {
  const path = await newPath();
  const database = await Database.open({ path, durability: "normal", busyLimitMs: 100 });
  const store = await storeOn(database, { hash: sha256 });
  onTestFinished(() => store.close());
  return { path, database, store, lease: await ownRun(store) };
}

const commit = (number: number, value: JsonValue = "x"): Commit => ({
  number,
  at: number,
  steps: [stepRecord(number, value)],
});

const large = "x".repeat(200_000);

test("a SQLite write to a full disk fails with store_full, loses no acknowledged write, and succeeds when there is space", async () => {
  const { path, database, store, lease } = await setup();
  await store.journal.append(lease, commit(1));
  const { page_count: pages } = database.get<{ page_count: number }>("PRAGMA page_count") ?? {
    page_count: 0,
  };
  database.exec(`PRAGMA max_page_count = ${pages}`);
  await expect(store.journal.append(lease, commit(2, large))).rejects.toMatchObject({ code: "store_full" });
  await expect(store.contents.put({ runId: lease.runId }, new Uint8Array(200_000))).rejects.toMatchObject({
    code: "store_full",
  });
  expect((await all(store.journal.read(lease.runId))).length).toBe(2);
  database.exec("PRAGMA max_page_count = 100000");
  await store.journal.append(lease, commit(2, large));
  await store.close();
  const again = await openStore(path);
  expect((await all(again.journal.read(lease.runId))).map(({ number }) => number)).toEqual([0, 1, 2]);
});

test("a SQLite write that does not fit on the disk does not fail the other writes of its group", async () => {
  const { database, store, lease } = await setup();
  const others = [await ownRun(store, "b"), await ownRun(store, "c")];
  const { page_count: pages } = database.get<{ page_count: number }>("PRAGMA page_count") ?? {
    page_count: 0,
  };
  database.exec(`PRAGMA max_page_count = ${pages + 4}`);
  const settled = await Promise.allSettled([
    ...others.map((other) => store.journal.append(other, commit(1))),
    store.journal.append(lease, commit(1, large)),
  ]);
  expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
  for (const { runId } of others) expect((await all(store.journal.read(runId))).length).toBe(2);
  expect((await all(store.journal.read(lease.runId))).length).toBe(1);
});

test("a write to a read-only SQLite file fails with store_read_only; reads succeed, and writes once the file is writable", async () => {
  const { database, store, lease } = await setup();
  database.exec("PRAGMA query_only = 1");
  await expect(store.journal.append(lease, commit(1))).rejects.toMatchObject({ code: "store_read_only" });
  await expect(createRun(store, "b")).rejects.toMatchObject({ code: "store_read_only" });
  expect((await all(store.journal.read(lease.runId))).length).toBe(1);
  database.exec("PRAGMA query_only = 0");
  expect(await store.journal.append(lease, commit(1))).toEqual(commit(1));
});

test("a SQLite write fails with store_unavailable when the file stays locked too long, and does not block the event loop", async () => {
  const { path, store, lease } = await setup();
  const other = connect(path);
  other.exec("BEGIN IMMEDIATE");
  const refused = Promise.resolve(store.journal.append(lease, commit(1)));
  const turns = turnsDuring(refused);
  await expect(refused).rejects.toMatchObject({ code: "store_unavailable", retry: "backoff" });
  expect(await turns).toBeGreaterThan(10);
  expect((await all(store.journal.read(lease.runId))).length).toBe(1);
  other.exec("ROLLBACK");
  expect(await store.journal.append(lease, commit(1))).toEqual(commit(1));
});

test("a SQLite write waits until another process releases its lock, alone and in a group", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const leases = [await ownRun(store), await ownRun(store, "b")];
  const other = connect(path);
  const writeLocked = async (...commits: Commit[]): Promise<number> => {
    other.exec("BEGIN IMMEDIATE");
    const writing = commits.map(async (each, index) => store.journal.append(leases[index] as Lease, each));
    for (let turn = 0; turn < 20; turn++) await setImmediate();
    other.exec("ROLLBACK");
    return (await Promise.all(writing)).length;
  };
  expect(await writeLocked(commit(1))).toBe(1);
  expect(await writeLocked(commit(2), commit(1))).toBe(2);
});

test("SQLite work that waited for a lock is refused with store_lost if the file was deleted meanwhile", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const { path, database } = await setup();
  const other = connect(path);
  other.exec("BEGIN IMMEDIATE");
  let worked = 0;
  const waiting = database.patiently(() => database.transaction("IMMEDIATE", () => ++worked));
  rmSync(path);
  // A comparison of the file with its path counts for a short time.
  vi.advanceTimersByTime(50);
  other.exec("COMMIT");
  await expect(waiting).rejects.toMatchObject({ code: "store_lost", details: { path } });
  expect(worked).toBe(0);
});

test("opening a file that is not a SQLite database fails with store_corrupt", async () => {
  const path = await newPath();
  writeFileSync(path, "this is not a database, though it is long enough to be read as one ".repeat(200));
  await expect(openStore(path)).rejects.toMatchObject({ code: "store_corrupt" });
});

test("reading a damaged part of a SQLite file fails with store_corrupt", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await ownRun(store);
  for (let number = 1; number < 50; number++)
    await store.journal.append(lease, commit(number, "y".repeat(2_000)));
  await store.close();
  const size = readFileSync(path).length;
  const file = openSync(path, "r+");
  const page = Buffer.alloc(4_096, 0xff);
  for (let at = 30 * 4_096; at < size; at += 4_096) writeSync(file, page, 0, page.length, at);
  closeSync(file);
  const reading = async (): Promise<unknown> => all((await openStore(path)).journal.read(lease.runId));
  await expect(reading()).rejects.toMatchObject({ code: "store_corrupt" });
});

test("opening a SQLite store at an unusable path fails with an error that says how to fix it", async () => {
  const path = await newPath();
  const nowhere = join(dirname(path), "nowhere", "store.db");
  await expect(openStore(nowhere)).rejects.toMatchObject({
    code: "not_found",
    message: expect.stringContaining("create it first"),
  });
  await expect(openStore(dirname(path))).rejects.toMatchObject({ code: "invalid_argument" });
  await expect(openStore(":memory:")).rejects.toMatchObject({ code: "invalid_argument" });
});

/** Opens stores in a process whose user has no special rights, so that the rights of folders count. Returns the errors. */
async function openUnprivileged(paths: readonly string[]): Promise<readonly string[]> {
  const source = new URL("../../../../../src/runtime/", import.meta.url);
  const code = `
    import { sqliteStore } from ${JSON.stringify(new URL("stores/sqlite/store.ts", source).href)};
    import { sha256 } from ${JSON.stringify(new URL("process/sha256.ts", source).href)};
    if (process.getuid() === 0) process.setuid(65534);
    const errors = ${JSON.stringify(paths)}.map((path) =>
      sqliteStore({ path, hash: sha256 }).then(() => "opened", ({ code, message }) => code + ": " + message));
    console.log(JSON.stringify(await Promise.all(errors)));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code]);
  return JSON.parse(stdout) as readonly string[];
}

test("a SQLite store in a folder that cannot be written is refused with store_read_only, which names the place", async () => {
  const path = await newPath();
  const folder = dirname(path);
  const hidden = join(folder, "hidden");
  await (await openStore(path)).close();
  mkdirSync(hidden, { mode: 0o000 });
  chmodSync(path, 0o444);
  chmodSync(folder, 0o555);
  const errors = await openUnprivileged([path, join(folder, "new.db"), join(hidden, "new.db")]);
  const refused = (place: string): unknown =>
    expect.stringMatching(
      new RegExp(`^store_read_only: .*this user has no right to write ${place}[;/]`, "u"),
    );
  expect(errors).toEqual([refused(path), refused(folder), refused(hidden)]);
  for (const each of [folder, hidden]) chmodSync(each, 0o755);
});

test("a closed SQLite store finishes pending writes and rejects new calls with closed; a second close() is harmless", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await ownRun(store);
  const pending = store.journal.append(lease, commit(1));
  const tails = Promise.allSettled([all(store.events.tail(lease.runId))]);
  await Promise.all([store.close(), store.close()]);
  expect(await pending).toEqual(commit(1));
  const closed = { code: "closed", message: expect.stringContaining(path) };
  expect(await tails).toMatchObject([{ status: "rejected", reason: closed }]);
  await expect(store.journal.append(lease, commit(2))).rejects.toMatchObject(closed);
  await expect(store.journal.find(lease.runId)).rejects.toMatchObject(closed);
  const again = await openStore(path);
  expect((await all(again.journal.read(lease.runId))).length).toBe(2);
});
