import { Client } from "pg";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { all, ownRun, runEnd } from "../../src/testing/contracts/store-fixtures.ts";
import { newSchema, openSchema, query } from "./schemas.ts";

test("E3: a tail of an own run yields a commit that was stored while the tail read the tables", async () => {
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
  await vi.waitFor(async () => expect(await query(waiting)).toHaveLength(1), { timeout: 20_000 });
  await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 1)] });
  await blocker.query("COMMIT");
  expect((await tail).map((item) => ("seq" in item ? item.seq : item.type))).toEqual([0, 1]);
});
