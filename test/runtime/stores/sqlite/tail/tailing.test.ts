import { expect, onTestFinished, test, vi } from "vitest";
import { sha256 } from "../../../../../src/runtime/process/sha256.ts";
import { Database } from "../../../../../src/runtime/stores/sqlite/db/database.ts";
import { storeOn } from "../../../../../src/runtime/stores/sqlite/store.ts";
import { eventDraft, userMessage } from "../../../../../src/kernel/index.ts";
import {
  agentId,
  ownRun,
  placed,
  rootTask,
  runEnd,
  turnStart,
} from "../../../../../src/testing/contracts/store-fixtures.ts";
import { newPath, openStore } from "../store-files.ts";

test("a tail of SQLite that selects few of many events keeps up with the run and reads nothing from the file", async () => {
  const database = await Database.open({ path: await newPath(), durability: "normal", busyLimitMs: 1_000 });
  const store = await storeOn(database, { hash: sha256 });
  onTestFinished(() => store.close());
  const lease = await ownRun(store);
  const { runId } = lease;
  const tail = store.events.tail(runId, { types: ["run_end"] })[Symbol.asyncIterator]();
  const end = tail.next();
  let seq = 1;
  for (let number = 1; number <= 30; number++) {
    const events = Array.from({ length: 100 }, () => turnStart(runId, seq++));
    await store.journal.append(lease, { number, at: 1, events });
  }
  const all = vi.spyOn(database, "all");
  const lists = vi.spyOn(database, "lists");
  await store.journal.append(lease, { number: 31, at: 1, events: [runEnd(runId, seq)] });
  expect(await end).toMatchObject({ value: { type: "run_end", seq } });
  expect((await tail.next()).done).toBe(true);
  // The commit that ends a run frees the runs that waited for it. Every other statement would be the tail's.
  const ofTail = all.mock.calls.filter(([sql]) => !sql.startsWith("UPDATE runs"));
  expect([ofTail, lists.mock.calls]).toEqual([[], []]);
});

test.each([
  ["reads no commit again for a run whose events are in memory", undefined],
  ["returns no text that the last commit erases", [{ taskId: rootTask, agentId }]],
] as const)("keep() of the SQLite event log after the tail %s", async (_what, erases) => {
  const database = await Database.open({ path: await newPath(), durability: "normal", busyLimitMs: 1_000 });
  const store = await storeOn(database, { hash: sha256 });
  onTestFinished(() => store.close());
  const lease = await ownRun(store);
  const { runId } = lease;
  const tail = store.events.tail(runId, { types: ["run_end"] })[Symbol.asyncIterator]();
  const end = tail.next();
  const secret = "a large and secret result ".repeat(1_000);
  const told = placed(runId, 1, eventDraft("message_end", { message: userMessage(secret) }));
  await store.journal.append(lease, { number: 1, at: 1, events: [told] });
  await store.journal.append(lease, {
    number: 2,
    at: 1,
    events: [runEnd(runId, 2)],
    ...(erases !== undefined && { erases }),
  });
  await end;
  await tail.next();
  const statements = vi.spyOn(database, "statement");
  const kept = (await store.events.keep(runId))();
  const reads = statements.mock.calls.filter(([sql]) => /content_pieces|body/u.test(sql));
  expect(kept.map(({ seq }) => seq)).toEqual([0, 1, 2]);
  expect([reads.length > 0, JSON.stringify(kept).includes(secret)]).toEqual(
    erases === undefined ? [false, true] : [true, false],
  );
});

test("E3: a slow reader of SQLite events sees every event once, even if its buffer is dropped more than once", async () => {
  const store = await openStore(await newPath());
  const lease = await ownRun(store);
  const { runId } = lease;
  let [number, seq] = [1, 1];
  const add = async (commits: number, each: number): Promise<void> => {
    for (let count = 0; count < commits; count++) {
      const events = Array.from({ length: each }, () => turnStart(runId, seq++));
      await store.journal.append(lease, { number: number++, at: 1, events });
    }
  };
  await add(20, 1);
  const seen: number[] = [];
  for await (const event of store.events.tail(runId)) {
    if (!("seq" in event)) continue;
    seen.push(event.seq);
    if (event.seq === 3 || event.seq === 1_500) await add(30, 100);
    if (event.seq === 1_500)
      await store.journal.append(lease, { number, at: 6, events: [runEnd(runId, seq++)] });
  }
  expect(seen).toEqual(Array.from({ length: seq }, (_, index) => index));
});
