import { expect, test } from "vitest";
import { runRecord } from "../../../../src/testing/contracts/store-fixtures.ts";
import type { RunRecord, Store } from "../../../../src/kernel/index.ts";
import { connect, newPath, openStore } from "./store-files.ts";

async function create(store: Store, name: string, more: Partial<RunRecord> = {}): Promise<void> {
  await store.journal.create({ ...runRecord(name), ...more }, { number: 0, at: 1 });
}

async function idsAfter(store: Store, position: string): Promise<readonly string[]> {
  return (await store.journal.changes(position)).runs.map(({ runId }) => runId);
}

test("K5: changes() on SQLite returns only the runs that another process has changed", async () => {
  const path = await newPath();
  const [store, other] = [await openStore(path), await openStore(path)];
  for (const name of ["a", "b", "c"]) await create(store, name);
  const { next } = await store.journal.changes();
  expect(await idsAfter(store, next)).toEqual([]);
  await other.mailbox.put({
    id: "m",
    runId: runRecord("b").runId,
    from: "x",
    at: 1,
    body: { type: "pause" },
  });
  expect(await idsAfter(store, next)).toEqual(["run_b"]);
  const later = await store.journal.changes(next);
  expect(await idsAfter(store, later.next)).toEqual([]);
});

test("K5: SQLite does not use the number of a change again after the row that had it was deleted", async () => {
  const path = await newPath();
  const store = await openStore(path);
  await create(store, "a");
  await create(store, "b");
  const { next } = await store.journal.changes();
  await store.journal.delete(runRecord("b").runId);
  await store.journal.delete(runRecord("a").runId);
  expect(connect(path).prepare("SELECT count(*) AS count FROM runs").get()).toEqual({ count: 0 });
  await create(store, "c");
  expect(await idsAfter(store, next)).toEqual(["run_c"]);
});

test("K2: list() on SQLite finds few runs behind many, whichever filter selects them", async () => {
  const path = await newPath();
  const store = await openStore(path);
  await create(store, "rare", { tenantId: "rare", userId: "ann", metadata: { team: "red" } });
  const many = connect(path);
  many.exec(`
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000)
    INSERT INTO runs (run_id, agent_id, session_id, tenant, user_id, priority, created_at, epoch, state, ready_at,
        mail_count, kind, ended, ended_at, spent, change)
      SELECT 'run_' || n, 'grown', 'ses_' || n, '=big', 'bob', 2, 1000 + n, 1, 3, n, 0, 0, 0, 1000 + n,
        json_object('usage', json('{}'), 'costUsd', n / 1000.0, 'unreported', json('{}'), 'turns', 1), n FROM numbers;
    INSERT INTO run_labels (name, value, tenant, created_at, run)
      SELECT 'team', 'red', tenant, created_at, id FROM runs WHERE agent_id = 'grown';
  `);
  const rare = [
    { userId: "ann" },
    { tenantId: "rare" },
    { tenantId: "rare", metadata: { team: "red" } },
    { userId: "ann", metadata: { team: "red" } },
    { userId: "ann", sort: "costliest" },
    { metadata: { team: "red" }, createdBefore: 1_000 },
    { costBelow: 0.001 },
  ] as const;
  for (const query of rare) {
    const { runs, next } = await store.journal.list(query);
    expect({ query, found: runs.map(({ runId }) => runId), next }).toEqual({
      query,
      found: ["run_rare"],
      next: null,
    });
  }
  const [first, second] = (await store.journal.list({ userId: "bob", sort: "costliest", limit: 2 })).runs;
  expect([first?.runId, first?.costUsd, second?.runId]).toEqual(["run_3000", 3, "run_2999"]);
  expect(await store.journal.count({ metadata: { team: "red" } })).toBe(3_001);
});
