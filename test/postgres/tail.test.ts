import { Client } from "pg";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { all, ownRun, rootTask, runEnd } from "../../src/testing/contracts/store-fixtures.ts";
import { newSchema, openSchema, query } from "./schemas.ts";

test("E3: tail() in the PostgreSQL owner's process yields a commit that was stored while it read the tables", async () => {
  const schema = newSchema();
  const store = await openSchema(schema);
  const lease = await ownRun(store);
  const blocker = new Client({ connectionString: inject("postgresUrl") });
  await blocker.connect();
  onTestFinished(() => blocker.end());
  // The tail reads the deltas after the commits. The lock stops it there.
  await blocker.query(`BEGIN; LOCK TABLE ${schema}.deltas`);
  const tail = all(store.events.tail(lease.runId));
  const waiting = `SELECT 1 FROM pg_locks WHERE NOT granted AND relation = '${schema}.deltas'::regclass`;
  await vi.waitFor(async () => expect(await query(waiting)).toHaveLength(1), { timeout: 300_000 });
  await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 1)] });
  await blocker.query("COMMIT");
  expect((await tail).map((item) => ("seq" in item ? item.seq : item.type))).toEqual([0, 1]);
});

test("E2: tail() in the PostgreSQL owner's process that begins after the deltas were written yields each of them once", async () => {
  const schema = newSchema();
  const store = await openSchema(schema);
  const lease = await ownRun(store);
  const { runId } = lease;
  const put = (offset: number, text: string): void => {
    const place = { runId, taskId: rootTask, messageSeq: 1, attempt: 1, offset } as const;
    store.events.putDelta(lease, { ...place, type: "message_update", kind: "text", text });
  };
  put(0, "Hel");
  const written = `SELECT 1 FROM ${schema}.deltas`;
  await vi.waitFor(async () => expect(await query(written)).toHaveLength(1), { timeout: 300_000 });
  const tail = store.events.tail(runId)[Symbol.asyncIterator]();
  await tail.next();
  const first: unknown = (await tail.next()).value;
  put(3, "lo");
  const second: unknown = (await tail.next()).value;
  expect([first, second]).toMatchObject([{ text: "Hel" }, { text: "lo" }]);
  await tail.return?.();
});
