import { expect, test } from "vitest";
import type { Event, Lease, Store } from "../../../../../src/kernel/index.ts";
import { all, ownRun, stepRecord, turnStart } from "../../../../../src/testing/contracts/store-fixtures.ts";
import { connect, newPath, openStore } from "../store-files.ts";

/**
 * Creates three runs that append in turns, with many more commits than the store moves to their final rows at once. Two
 * of three commits have two events each.
 */
async function setup(length: number): Promise<{ path: string; store: Store; leases: Lease[] }> {
  const path = await newPath();
  const store = await openStore(path);
  const leases = [await ownRun(store, "a"), await ownRun(store, "b"), await ownRun(store, "c")];
  for (let number = 1; number <= length; number++) {
    await Promise.all(leases.map(async (lease) => store.journal.append(lease, commitOf(lease, number))));
  }
  return { path, store, leases };
}

function commitOf({ runId }: Lease, number: number) {
  const events: Event[] = [];
  let seq = 1 + 2 * (number - 1 - Math.floor((number - 1) / 3));
  if (number % 3 !== 0) events.push(turnStart(runId, seq++), turnStart(runId, seq++));
  return { number, at: number, steps: [stepRecord(number, { number })], events };
}

test("SQLite reads each run completely and in order, whether its commits lie in their final rows or in the newest ones", async () => {
  const { store, leases } = await setup(700);
  for (const { runId } of leases) {
    const commits = await all(store.journal.read(runId));
    expect(commits.map(({ number }) => number)).toEqual(Array.from({ length: 701 }, (_, number) => number));
    const events = await all(store.events.read(runId));
    expect(events.map(({ seq }) => seq)).toEqual(Array.from({ length: events.length }, (_, seq) => seq));
    expect(await store.events.lastSeq(runId)).toBe(events.length - 1);
    expect(await store.events.verify(runId)).toMatchObject({ ok: true, events: events.length });
  }
});

test("a read from SQLite can start at any commit number and at any event seq", async () => {
  const { store, leases } = await setup(400);
  const [{ runId }] = leases as [Lease];
  const events = await all(store.events.read(runId));
  for (const seq of [0, 1, 2, 255, 256, 257, 511, 512, events.length - 2, events.length - 1]) {
    expect(await all(store.events.read(runId, seq))).toEqual(events.slice(seq));
  }
  for (const number of [0, 1, 127, 128, 129, 170, 171, 172, 340, 399, 400]) {
    const [first] = await all(store.journal.read(runId, number));
    expect(first?.number).toBe(number);
  }
  expect(await all(store.journal.read(runId, 401))).toEqual([]);
});

test("J1: an append to SQLite under the number of an old commit returns the old commit", async () => {
  const { store, leases } = await setup(400);
  const [lease] = leases as [Lease];
  for (const number of [1, 100, 399]) {
    const standing = await store.journal.append(lease, { number, at: 9_999 });
    expect(standing).toMatchObject({ number, at: number, steps: [stepRecord(number, { number })] });
  }
});

test("a tail of SQLite that starts late reads all earlier events and then new events", async () => {
  const { store, leases } = await setup(300);
  const [lease] = leases as [Lease];
  const seqs: number[] = [];
  const end = (await store.events.lastSeq(lease.runId)) + 2;
  const tail = (async () => {
    for await (const each of store.events.tail(lease.runId)) {
      if ("seq" in each) seqs.push(each.seq);
      if (seqs.length > end) return;
    }
  })();
  await store.journal.append(lease, commitOf(lease, 301));
  await tail;
  expect(seqs).toEqual(Array.from({ length: end + 1 }, (_, seq) => seq));
});

test("opening a SQLite store moves the commits of processes that wrote only a few commits each to their final rows", async () => {
  const path = await newPath();
  for (let round = 0; round < 8; round++) {
    const store = await openStore(path);
    const lease = await ownRun(store, `${round}`);
    const numbers = Array.from({ length: 100 }, (_, index) => index + 1);
    await Promise.all(numbers.map(async (number) => store.journal.append(lease, { number, at: number })));
    await store.close();
  }
  await (await openStore(path)).close();
  const row = connect(path)
    .prepare("SELECT (SELECT max(id) FROM commits) - through AS fresh FROM placed")
    .get();
  expect(row?.["fresh"]).toBeLessThan(600);
});

test("reading a run whose SQLite commits were deleted by hand fails with store_corrupt, and other runs still work", async () => {
  const { path, store, leases } = await setup(200);
  const [lease] = leases as [Lease];
  await store.close();
  connect(path).exec("DELETE FROM commits WHERE id > 400");
  const again = await openStore(path);
  await expect(all(again.journal.read(lease.runId))).rejects.toMatchObject({ code: "store_corrupt" });
  expect((await again.events.verify(lease.runId)).ok).toBe(false);
  const other = await ownRun(again, "other");
  await again.journal.append(other, { number: 1, at: 1 });
  expect((await all(again.journal.read(other.runId))).length).toBe(2);
});
