import { expect, test, vi } from "vitest";
import type { Lease, Store } from "../../../../../src/kernel/index.ts";
import {
  all,
  createRun,
  ownRun,
  runEnd,
  sessionId,
  stepRecord,
  turnStart,
} from "../../../../../src/testing/contracts/store-fixtures.ts";
import { count, newPath, openStore, turnsDuring, until } from "../store-files.ts";

const commits = 3_000;
/**
 * Number of rows that the first slice frees. A slice that takes exactly its time limit keeps the size for the next
 * slice.
 */
const slice = 64;

/** Creates a long run with mail and a content of several pieces, and a short run. */
async function setup(): Promise<{ path: string; store: Store; long: Lease; short: Lease }> {
  const path = await newPath();
  const store = await openStore(path);
  const long = await ownRun(store, "long");
  const short = await ownRun(store, "short");
  const { runId } = long;
  for (let number = 1; number < commits; number += 100) {
    const numbers = Array.from({ length: Math.min(100, commits - number) }, (_, index) => number + index);
    await Promise.all(
      numbers.map(async (each) =>
        store.journal.append(long, {
          number: each,
          at: each,
          steps: [stepRecord(each, "x".repeat(300))],
          events: [turnStart(runId, each)],
        }),
      ),
    );
  }
  await store.journal.append(short, { number: 1, at: 1, events: [turnStart(short.runId, 1)] });
  await store.mailbox.put({ id: "m", runId, from: "x", at: 1, body: { type: "pause" } });
  await store.contents.put({ runId }, new Uint8Array(1_000_000));
  return { path, store, long, short };
}

const left = (path: string): number[] =>
  ["runs", "commits", "mail", "mail_ids", "contents", "content_pieces"].map((table) => count(path, table));

test("a run that is deleted from SQLite is gone at once, and its rows are freed in slices that do not block the event loop", async () => {
  const { path, store, long, short } = await setup();
  // With this clock every slice takes its full time, so that the number of slices does not depend on the machine.
  let ms = performance.now();
  using clock = vi.spyOn(performance, "now").mockImplementation(() => ++ms);
  const deleting = store.journal.delete(long.runId);
  const turns = turnsDuring(deleting);
  await until(async () => (await store.journal.find(long.runId)) === undefined, "the run is gone");
  expect(count(path, "commits")).toBeGreaterThan(commits / 2);
  await store.journal.append(short, { number: 2, at: 2 });
  await deleting;
  expect(clock).toHaveBeenCalled();
  expect(await turns).toBeGreaterThanOrEqual(Math.floor(commits / slice));
  expect(left(path)).toEqual([1, 3, 0, 0, 0, 0]);
  expect((await all(store.journal.read(short.runId))).length).toBe(3);
  expect(await store.events.verify(short.runId)).toMatchObject({ ok: true, events: 2 });
});

test("the id of a run that is deleted from SQLite can be used again while its rows are freed", async () => {
  const { store, long } = await setup();
  const deleting = store.journal.delete(long.runId);
  await until(async () => (await store.journal.find(long.runId)) === undefined, "the run is gone");
  await createRun(store, "long");
  await expect(store.journal.append(long, { number: 1, at: 1 })).rejects.toMatchObject({
    code: "lease_lost",
  });
  const hash = await store.contents.put({ runId: long.runId }, new Uint8Array([1]));
  await deleting;
  expect(await store.events.lastSeq(long.runId)).toBe(0);
  expect(await store.contents.get({ runId: long.runId }, hash)).toEqual(new Uint8Array([1]));
});

test("rows that a closed SQLite store did not free are freed when the store is opened again", async () => {
  const { path, store, long } = await setup();
  const deleting = store.journal.delete(long.runId).catch(() => undefined);
  await until(async () => (await store.journal.find(long.runId)) === undefined, "the run is gone");
  await store.close();
  await deleting;
  expect(count(path, "commits")).toBeGreaterThan(3);
  const again = await openStore(path);
  await until(() => left(path).join() === "1,2,0,0,0,0", "the remaining rows were freed");
  const next = await ownRun(again, "next");
  await again.journal.append(next, { number: 1, at: 1, events: [turnStart(next.runId, 1)] });
  expect((await all(again.events.read(next.runId))).length).toBe(2);
});

test("deleting a session frees its rows in SQLite", async () => {
  const path = await newPath();
  const { sessions } = await openStore(path);
  const entries = Array.from({ length: 200 }, (_, index) => ({
    type: "append",
    sessionId,
    agentId: "tester",
    visibility: "visible",
    entry: {
      type: "session_info",
      id: `e${index}`,
      parentId: null,
      at: 1,
      runId: null,
      taskId: null,
      name: "n",
    },
  }));
  await sessions.apply(entries as unknown as Parameters<typeof sessions.apply>[0]);
  await sessions.delete(sessionId);
  expect([count(path, "sessions"), count(path, "entries")]).toEqual([0, 0]);
});

test("collect() on SQLite frees many ended runs in slices that do not block the event loop", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const runs = 500;
  for (let each = 0; each < runs; each++) {
    const lease = await ownRun(store, `ended-${each}`);
    await store.journal.append(lease, { number: 1, at: 5, events: [runEnd(lease.runId, 1)] });
    await store.leases.release(lease, { kind: "ended" });
  }
  const collecting = store.journal.collect({ endedBefore: 6 });
  expect(await turnsDuring(collecting)).toBeGreaterThan(20);
  expect(await collecting).toBe(runs);
  expect(["runs", "commits", "places"].map((table) => count(path, table))).toEqual([0, 0, 0]);
});
