import { expect, onTestFinished, test, vi } from "vitest";
import { sha256 } from "../../../../src/runtime/sha256.ts";
import { Database } from "../../../../src/runtime/stores/sqlite/database.ts";
import { storeOn } from "../../../../src/runtime/stores/sqlite/store.ts";
import { ownRun, runEnd, turnStart } from "../../../../src/testing/store-fixtures.ts";
import { newPath } from "./store-files.ts";

test("who tails for a few events of very many is not behind when they come, and reads nothing of the file", async () => {
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
  expect([all.mock.calls, lists.mock.calls]).toEqual([[], []]);
});
