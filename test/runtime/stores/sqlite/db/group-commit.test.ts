import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Commit, JsonValue, Lease, Store } from "../../../../../src/kernel/index.ts";
import { all, ownRun, stepRecord, turnStart } from "../../../../../src/testing/contracts/store-fixtures.ts";
import { newPath, openStore, turnsDuring } from "../store-files.ts";

/**
 * Counts the transactions in SQLite's write-ahead log: the last frame of each transaction holds the size of the file.
 */
function transactions(path: string): number {
  const log = readFileSync(`${path}-wal`);
  const frame = 24 + log.readUInt32BE(8);
  let count = 0;
  for (let at = 32; at + frame <= log.length; at += frame) if (log.readUInt32BE(at + 4) > 0) count++;
  return count;
}

async function setup(runs: number): Promise<{ path: string; store: Store; leases: Lease[] }> {
  const path = await newPath();
  const store = await openStore(path);
  const leases: Lease[] = [];
  for (let run = 0; run < runs; run++) leases.push(await ownRun(store, `${run}`));
  return { path, store, leases };
}

const first = (value: JsonValue = "x"): Commit => ({ number: 1, at: 2, steps: [stepRecord(0, value)] });

test("SQLite appends of many runs in the same turn of the event loop share one transaction", async () => {
  const { path, store, leases } = await setup(40);
  const before = transactions(path);
  await Promise.all(leases.map(async (lease) => store.journal.append(lease, first())));
  expect(transactions(path) - before).toBe(1);
  for (const { runId } of leases) expect((await all(store.journal.read(runId))).length).toBe(2);
});

test("runs that append to SQLite again as soon as their last append resolves continue to share transactions", async () => {
  const { path, store, leases } = await setup(20);
  const before = transactions(path);
  await Promise.all(
    leases.map(async (lease) => {
      for (let number = 1; number <= 10; number++) {
        await store.journal.append(lease, { number, at: number, steps: [stepRecord(number, "x")] });
      }
    }),
  );
  // There are ten rounds. A round takes two transactions if a turn of the event loop ends within it.
  expect(transactions(path) - before).toBeLessThan(40);
});

test("each SQLite append of a group succeeds or fails independently of the other appends", async () => {
  const { path, store, leases } = await setup(5);
  const [good, lost, notJson, gap, other] = leases as [Lease, Lease, Lease, Lease, Lease];
  await store.leases.seize(lost.runId, "w2");
  const before = transactions(path);
  const orphan = {
    type: "append",
    sessionId: "ses_1",
    agentId: "tester",
    entry: { type: "session_info", id: "e", parentId: "nowhere", at: 1, runId: null, name: "n" },
    visibility: "visible",
  };
  const settled = await Promise.allSettled([
    store.journal.append(good, first()),
    store.journal.append(lost, first()),
    store.journal.append(notJson, first(Number.NaN)),
    store.journal.append(gap, { ...first(), number: 5 }),
    store.journal.append(other, { ...first(), sessions: [orphan] } as unknown as Commit),
  ]);
  const codes = settled.map((each) =>
    each.status === "fulfilled" ? "stands" : (each.reason as { code: string }).code,
  );
  expect(codes).toEqual(["stands", "lease_lost", "not_json", "invalid_argument", "not_found"]);
  expect(transactions(path) - before).toBe(1);
  for (const { runId } of leases.slice(1)) expect((await all(store.journal.read(runId))).length).toBe(1);
});

test("commits of one run that are appended to SQLite without waiting are written in order", async () => {
  const { store, leases } = await setup(1);
  const [lease] = leases as [Lease];
  const commits = [1, 2, 3].map((number) => ({
    number,
    at: number,
    events: [turnStart(lease.runId, number)],
  }));
  await Promise.all(commits.map(async (commit) => store.journal.append(lease, commit)));
  expect((await all(store.journal.read(lease.runId, 1))).map(({ number }) => number)).toEqual([1, 2, 3]);
  expect(await store.events.verify(lease.runId)).toMatchObject({ ok: true, events: 4 });
});

test("a SQLite commit that follows a rejected commit of the same run in one group is rejected as a gap", async () => {
  const { store, leases } = await setup(1);
  const [lease] = leases as [Lease];
  const settled = await Promise.allSettled([
    store.journal.append(lease, first(Number.NaN)),
    store.journal.append(lease, { number: 2, at: 2 }),
  ]);
  expect(settled.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await store.journal.append(lease, first())).toEqual(first());
});

test("J3: a SQLite append is rejected with lease_lost when another worker seizes the run earlier in the same group", async () => {
  const { store, leases } = await setup(2);
  const [lost, other] = leases as [Lease, Lease];
  await Promise.all([store.journal.append(lost, first()), store.journal.append(other, first())]);
  const [, late] = await Promise.allSettled([
    store.leases.seize(lost.runId, "w2"),
    store.journal.append(lost, { number: 2, at: 3 }),
    store.journal.append(other, { number: 2, at: 3 }),
  ]);
  expect(late).toMatchObject({ status: "rejected", reason: { code: "lease_lost" } });
  expect((await all(store.journal.read(lost.runId))).length).toBe(2);
});

test("timers and sockets are served while a loop appends to SQLite without pause", async () => {
  const { store, leases } = await setup(1);
  const [lease] = leases as [Lease];
  const writing = (async () => {
    for (let number = 1; number <= 2_000; number++) await store.journal.append(lease, { number, at: number });
  })();
  expect(await turnsDuring(writing)).toBeGreaterThan(1);
});
