import { expect, test } from "vitest";
import { formatAgentId, Priority, type RunId, type Store } from "../../../../src/kernel/index.ts";
import { FakeClock } from "../../../../src/testing/index.ts";
import { createRun, ownRun, rootTask, runRecord } from "../../../../src/testing/contracts/store-fixtures.ts";
import { newPath, openStore } from "./store-files.ts";

async function setup(): Promise<{ path: string; store: Store }> {
  const path = await newPath();
  const store = await openStore(path);
  await store.leases.enlist("here");
  return { path, store };
}

async function claimAll(store: Store, now = 0): Promise<RunId[]> {
  const runs: RunId[] = [];
  for (;;) {
    const claimed = await store.leases.claim({ workerId: "here", limit: 100, now });
    if (claimed.length === 0) return runs;
    runs.push(...claimed.map(({ runId }) => runId));
  }
}

test("L2: claim() on SQLite finds all runs of a worker that is gone, even hundreds of them", async () => {
  const { path, store } = await setup();
  const elsewhere = await openStore(path);
  await elsewhere.leases.enlist("there");
  const names = Array.from({ length: 700 }, (_, index) => `${index}`);
  await Promise.all(names.map((name) => createRun(store, name)));
  const taken = await elsewhere.leases.claim({ workerId: "there", limit: 700, now: 0 });
  expect(taken.length).toBe(700);
  expect(await claimAll(store)).toEqual([]);
  await elsewhere.close();
  expect((await claimAll(store)).length).toBe(700);
});

test("L2: a SQLite worker that enlists again under its old name does not own its earlier runs; any worker can claim them", async () => {
  const path = await newPath();
  const before = await openStore(path);
  const lease = await ownRun(before);
  await before.close();
  const store = await openStore(path);
  await store.leases.enlist("w1");
  await store.leases.enlist("here");
  expect(await claimAll(store)).toEqual([lease.runId]);
});

test("L2: claim() on SQLite returns all suspended runs whose wake time has come, even hundreds, and no other run", async () => {
  const { store } = await setup();
  const names = Array.from({ length: 600 }, (_, index) => `${index}`);
  await Promise.all(
    names.map(async (name, index) => {
      const runId = await createRun(store, name);
      const lease = await store.leases.seize(runId, "here");
      if (lease === undefined) throw new Error("the run could not be seized");
      await store.leases.release(lease, { kind: "suspended", wakeAt: index });
    }),
  );
  expect((await claimAll(store, 399)).length).toBe(400);
  expect((await claimAll(store, 399)).length).toBe(0);
});

test("L5: one claim() on SQLite serves tenants in turn, runs without a tenant included, across all agents of the query", async () => {
  const { store } = await setup();
  const [ann, bob] = [formatAgentId({ name: "ann" }), formatAgentId({ name: "bob" })];
  const create = (
    name: string,
    tenantId: string | null,
    agentId = ann,
    priority: Priority = Priority.NORMAL,
  ) => store.journal.create({ ...runRecord(name), tenantId, agentId, priority }, { number: 0, at: 1 });
  await create("a1", "a");
  await create("a2", "a", bob, Priority.CRITICAL);
  await create("a3", "a");
  await create("n1", null);
  await create("n2", null, bob);
  await create("z1", "z", formatAgentId({ name: "stranger" }));
  const claim = async (limit: number): Promise<string[]> =>
    (
      await store.leases.claim({
        workerId: "here",
        limit,
        now: 0,
        agents: [{ agentId: ann }, { agentId: bob }],
      })
    ).map(({ runId }) => runId.slice("run_".length));
  expect(await claim(3)).toEqual(["n1", "a2", "n2"]);
  expect(await claim(9)).toEqual(["a1", "a3"]);
});

test("L5: within a tenant, claim() on SQLite returns the run first that has been ready longest, by wake time or mail", async () => {
  const path = await newPath();
  const clock = new FakeClock(1_000);
  const store = await openStore(path, { clock });
  const leases = [await ownRun(store, "a"), await ownRun(store, "b"), await ownRun(store, "c")];
  const [a, b, c] = leases;
  if (a === undefined || b === undefined || c === undefined) throw new Error("expected three runs");
  await store.leases.release(b, { kind: "suspended", wakeAt: 5_000 });
  await store.leases.release(a, { kind: "suspended", wakeAt: 3_000 });
  await clock.advance(3_000);
  await store.leases.release(c, { kind: "suspended", wakeAt: null });
  const body = { type: "resolve", taskId: rootTask, wait: "x", value: 1 } as const;
  await store.mailbox.put({ id: "m", runId: c.runId, from: "x", at: 1, body });
  expect(await claimOrder(store)).toEqual([a.runId, c.runId, b.runId]);
});

async function claimOrder(store: Store): Promise<RunId[]> {
  return (await store.leases.claim({ workerId: "w1", limit: 9, now: 9_000 })).map(({ runId }) => runId);
}
