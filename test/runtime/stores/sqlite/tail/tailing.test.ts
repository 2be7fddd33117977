import { expect, onTestFinished, test, vi } from "vitest";
import { sha256 } from "../../../../../src/runtime/process/sha256.ts";
import { Database } from "../../../../../src/runtime/stores/sqlite/db/database.ts";
import { storeOn } from "../../../../../src/runtime/stores/sqlite/store.ts";
import { ownRun, runEnd, turnStart } from "../../../../../src/testing/contracts/store-fixtures.ts";
import { newPath, openStore } from "../store-files.ts";

test("a tail that selects few of many events keeps up with the run and reads nothing from the file", async () => {
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

test("E3: a slow reader sees every event once, even if the feed drops its backlog more than once", async () => {
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
