import { spawn } from "node:child_process";
import { once } from "node:events";
import { Client } from "pg";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import {
  formatAgentId,
  type Fault,
  type Lease,
  type LostOwner,
  type Store,
  type StoreChange,
} from "../../src/kernel/index.ts";
import { hasEnded, processName } from "../../src/runtime/stores/postgres/db/worker-process.ts";
import { all, createRun, ownRun, runRecord, stepRecord } from "../../src/testing/contracts/store-fixtures.ts";
import { CuttingProxy } from "./cutting-proxy.ts";
import { newSchema, openSchema, query } from "./schemas.ts";

const claim = (store: Store, workerId: string) => store.leases.claim({ workerId, limit: 10, now: 0 });

/** Sets the last sign of life of a worker to a minute ago, as if its process had been stopped for that time. */
async function silence(schema: string, workerId: string): Promise<void> {
  await query(
    `UPDATE ${schema}.workers SET beat_at = beat_at - interval '1 minute' WHERE worker_id = '${workerId}'`,
  );
}

test("L2, J3: a PostgreSQL worker that is silent loses its run, writes nothing more, and learns it from onLost", async () => {
  const schema = newSchema();
  const [one, other] = [await openSchema(schema), await openSchema(schema)];
  const lost = await ownRun(one);
  const faults: Fault[] = [];
  await one.leases.enlist("w1", { onLost: (fault) => faults.push(fault) });
  await other.leases.enlist("w2");
  expect(await claim(other, "w2")).toEqual([]);
  await silence(schema, "w1");
  const [lease] = await claim(other, "w2");
  expect(lease).toMatchObject({ runId: lost.runId, epoch: lost.epoch + 1, recoveries: 1 });
  const commit = { number: 1, at: 2, steps: [stepRecord(0, "late")] };
  await expect(one.journal.append(lost, commit)).rejects.toMatchObject({ code: "lease_lost" });
  await expect(one.leases.release(lost, { kind: "ended" })).rejects.toMatchObject({ code: "lease_lost" });
  expect(await claim(one, "w1")).toEqual([]);
  expect(faults.map(({ code }) => code)).toEqual(["store_unavailable"]);
  expect(await all(other.journal.read(lost.runId))).toHaveLength(1);
});

test("L2: each PostgreSQL worker is judged by the lease that it registered with, also by a worker with a shorter lease", async () => {
  const schema = newSchema();
  const [patient, hasty] = [
    await openSchema(schema, { leaseMs: 3_600_000 }),
    await openSchema(schema, { leaseMs: 1_000 }),
  ];
  const lease = await ownRun(patient);
  const { runId } = lease;
  await hasty.leases.enlist("w2");
  const takeOver = { suspended: true, ended: false };
  const only = { workerId: "w2", limit: 1, now: 0, only: [runId] };
  // The last beat is older than the lease of the other worker, and younger than its own.
  await silence(schema, "w1");
  expect(await hasty.leases.findReady({ now: 0, limit: 10 })).toEqual([]);
  expect(await claim(hasty, "w2")).toEqual([]);
  expect(await hasty.leases.claim(only)).toEqual([]);
  await expect(hasty.leases.claim({ ...only, takeOver })).rejects.toMatchObject({ code: "run_owned" });
  await patient.leases.check(lease);
  // A worker with a long lease takes over at once what a worker with a short one has left.
  const other = await createRun(hasty, "b");
  expect(await claim(hasty, "w2")).toMatchObject([{ runId: other }]);
  await query(
    `UPDATE ${schema}.workers SET incarnation = 1, beat_at = now() - interval '2 seconds' WHERE worker_id = 'w2'`,
  );
  expect(await claim(patient, "w1")).toMatchObject([{ runId: other, workerId: "w1" }]);
});

test("J3: check() on PostgreSQL refuses a run that was taken over after a sign of life has registered its worker again", async () => {
  const schema = newSchema();
  const [one, other] = [await openSchema(schema, { leaseMs: 3_000 }), await openSchema(schema)];
  const [lost, kept] = [await ownRun(one, "lost"), await ownRun(one, "kept")];
  const again = Promise.withResolvers<Fault>();
  await one.leases.enlist("w1", { onLost: again.resolve });
  // The rows are those of a take-over by another process, of which no notification tells.
  await query(`BEGIN; DELETE FROM ${schema}.workers;
    UPDATE ${schema}.runs SET owner = 'heir', epoch = epoch + 1 WHERE run_id = '${lost.runId}'; COMMIT`);
  expect((await again.promise).code).toBe("store_unavailable");
  await vi.waitFor(() => expect(one.leases.isConfirmed("w1")).toBe(true), { timeout: 300_000 });
  await expect(one.leases.check(lost)).rejects.toMatchObject({ code: "lease_lost" });
  await one.leases.check(kept);
  const commit = { number: 1, at: 2, steps: [stepRecord(0, "kept")] };
  expect(await one.journal.append(kept, commit)).toMatchObject({ number: 1 });
  expect(await all(other.journal.read(kept.runId))).toHaveLength(2);
});

test("J3: a PostgreSQL worker cannot register again while another recovers its run, although its registration was gone", async () => {
  const schema = newSchema();
  const [one, other] = [
    await openSchema(schema, { leaseMs: 60_000 }),
    await openSchema(schema, { leaseMs: 60_000 }),
  ];
  const lost = await ownRun(one);
  await one.leases.enlist("w1", { onLost: () => undefined });
  await other.leases.enlist("w2");
  await query(`DELETE FROM ${schema}.workers WHERE worker_id = 'w1'`);
  // The heir stops when it has found no registration of the owner and has written that the run is recovered.
  const gate = new Client({ connectionString: inject("postgresUrl") });
  await gate.connect();
  onTestFinished(() => gate.end());
  await gate.query(`SELECT pg_advisory_lock(hashtext('${schema}'));
    CREATE FUNCTION ${schema}.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      PERFORM set_config('lock_timeout', '0', true), pg_advisory_xact_lock_shared(hashtext('${schema}'));
      RETURN NULL;
    END $$;
    CREATE TRIGGER gate AFTER UPDATE ON ${schema}.runs FOR EACH ROW WHEN (new.owner IS NULL)
      EXECUTE FUNCTION ${schema}.wait()`);
  const isWaiting = (statement: string) => async () =>
    expect(
      await query(
        `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '${statement}'`,
      ),
    ).toHaveLength(1);
  const recovering = claim(other, "w2");
  await vi.waitFor(isWaiting(`UPDATE %${schema}%runs%`), { timeout: 300_000 });
  // It must wait for the heir. Otherwise it registers again at once and finds that it still owns the run.
  const registering = (async () => {
    await claim(one, "w1");
    await one.leases.check(lost);
  })();
  await Promise.race([
    registering,
    vi.waitFor(isWaiting(`INSERT INTO %${schema}%workers%`), { timeout: 300_000 }),
  ]);
  await gate.query(`SELECT pg_advisory_unlock(hashtext('${schema}'))`);
  expect(await recovering).toMatchObject([{ runId: lost.runId, epoch: lost.epoch + 1, recoveries: 1 }]);
  await expect(registering).rejects.toMatchObject({ code: "lease_lost" });
});

/** Starts a process that does nothing, and returns its name in the table of workers. */
async function startProcess(): Promise<{ readonly name: string; readonly kill: () => Promise<void> }> {
  const source = new URL("../../src/runtime/stores/postgres/db/worker-process.ts", import.meta.url);
  const program = `const { processName } = await import(${JSON.stringify(source)});
    process.stdout.write(processName()); setInterval(() => undefined, 60_000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
  };
  onTestFinished(kill);
  const [name] = (await once(child.stdout, "data")) as [Buffer];
  return { name: String(name), kill };
}

test.runIf(process.platform === "linux")(
  "L15: the run of a PostgreSQL worker whose process has ended is taken before its lease ends only if the claim asks for it",
  async () => {
    const schema = newSchema();
    const [one, other] = [await openSchema(schema), await openSchema(schema)];
    const lost = await ownRun(one);
    await other.leases.enlist("w2");
    const own = processName() ?? "";
    expect(await query(`SELECT process FROM ${schema}.workers`)).toEqual([
      { process: own },
      { process: own },
    ]);
    const { name, kill } = await startProcess();
    const claimEnded = async (process: string, ended = true): Promise<readonly Lease[]> => {
      await query(`UPDATE ${schema}.workers SET process = '${process}' WHERE worker_id = 'w1'`);
      const takeOver = { suspended: true, ended };
      return other.leases.claim({ workerId: "w2", limit: 1, now: 0, only: [lost.runId], takeOver });
    };
    await expect(claimEnded(name)).rejects.toMatchObject({ code: "run_owned" });
    await kill();
    const [host = "", ...rest] = name.split(" ");
    const [boot = "", namespace = "", ...numbers] = rest;
    // Nothing is known about processes of another machine, of an earlier boot, or of another container.
    for (const unknown of [
      [`${host}-2`, boot, namespace, ...numbers],
      [host, `${boot}-2`, namespace, ...numbers],
      [host, boot, "pid:[1]", ...numbers],
    ])
      await expect(claimEnded(unknown.join(" "))).rejects.toMatchObject({ code: "run_owned" });
    await expect(claimEnded(name, false)).rejects.toMatchObject({ code: "run_owned" });
    await one.leases.check(lost);
    expect(await claimEnded(name)).toMatchObject([{ epoch: lost.epoch + 1, workerId: "w2", recoveries: 1 }]);
    const commit = { number: 1, at: 2, steps: [stepRecord(0, "late")] };
    await expect(one.journal.append(lost, commit)).rejects.toMatchObject({ code: "lease_lost" });
    // A process that got the same id later has another start time.
    const [start = "", pid = ""] = numbers.toReversed();
    expect([pid, start].every((number) => /^\d+$/u.test(number))).toBe(true);
    expect(hasEnded([host, boot, namespace, process.pid, start].join(" "))).toBe(true);
    expect(hasEnded(own)).toBe(false);
  },
);

test.runIf(process.platform === "linux")(
  "L6: a PostgreSQL worker registers at once under the name of one whose process has ended, and frees its runs",
  async () => {
    const schema = newSchema();
    const [one, other] = [
      await openSchema(schema, { leaseMs: 3_600_000 }),
      await openSchema(schema, { leaseMs: 3_600_000 }),
    ];
    const lost = await ownRun(one);
    const { name, kill } = await startProcess();
    await kill();
    await query(`UPDATE ${schema}.workers SET process = '${name}' WHERE worker_id = 'w1'`);
    await other.leases.enlist("w1");
    expect(await claim(other, "w1")).toMatchObject([{ runId: lost.runId, recoveries: 1 }]);
  },
);

/** Two stores of one schema. The worker w1 of the first runs on another machine, was silent, and has lost its run to w2 of the second. */
async function loseRun(): Promise<{
  readonly schema: string;
  readonly one: Store;
  readonly other: Store;
  readonly lost: LostOwner;
}> {
  const schema = newSchema();
  const [one, other] = [await openSchema(schema), await openSchema(schema)];
  await ownRun(one);
  await other.leases.enlist("w2");
  await silence(schema, "w1");
  await query(`UPDATE ${schema}.workers SET process = 'far-away boot pid:[1] 7 1' WHERE worker_id = 'w1'`);
  const [lease] = await claim(other, "w2");
  if (lease?.lostOwner === undefined) throw new Error("the lease names no lost owner");
  return { schema, one, other, lost: lease.lostOwner };
}

test("L7: a silent PostgreSQL worker of another machine counts as ended after ten leases, until it gives a sign of life", async () => {
  const { schema, one, other, lost } = await loseRun();
  expect(lost).toMatchObject({ workerId: "w1", host: "far-away", hasEnded: false });
  expect(await other.leases.haveEnded([lost])).toEqual([false]);
  await query(`UPDATE ${schema}.lost_workers SET beat_at = now() - interval '149 seconds'`);
  expect(await other.leases.haveEnded([lost])).toEqual([false]);
  await query(`UPDATE ${schema}.lost_workers SET beat_at = now() - interval '151 seconds'`);
  expect(await other.leases.haveEnded([lost, { ...lost, registration: "1" }])).toEqual([true, false]);
  await one.leases.enlist("w1", { onLost: () => undefined });
  await claim(one, "w1");
  expect(await other.leases.haveEnded([lost])).toEqual([false]);
  expect(await other.leases.haveEnded([{ ...lost, hasEnded: true }])).toEqual([false]);
});

test("L7: a silent PostgreSQL worker counts as ended when its name registers again, until it gives a sign of life", async () => {
  const { schema, one, other, lost } = await loseRun();
  // A new process takes the name. The row of the old one is gone.
  const third = await openSchema(schema);
  await third.leases.enlist("w1");
  expect(await other.leases.haveEnded([lost])).toEqual([true]);
  await one.leases.enlist("w1", { onLost: () => undefined });
  await expect(Promise.resolve(claim(one, "w1"))).rejects.toMatchObject({ code: "already_exists" });
  expect(await other.leases.haveEnded([lost])).toEqual([false]);
});

test("L2: a PostgreSQL worker whose sign of life arrives before it is taken over keeps its run", async () => {
  const schema = newSchema();
  const [one, other] = [await openSchema(schema, { leaseMs: 60 }), await openSchema(schema, { leaseMs: 60 })];
  const lease = await ownRun(one);
  await silence(schema, "w1");
  const fresh = `SELECT 1 FROM ${schema}.workers WHERE worker_id = 'w1' AND beat_at > now() - interval '30 seconds'`;
  await vi.waitFor(async () => expect(await query(fresh)).toHaveLength(1), { timeout: 300_000 });
  await other.leases.enlist("w2");
  await one.leases.check(lease);
  expect(await one.journal.append(lease, { number: 1, at: 2 })).toMatchObject({ number: 1 });
});

test("J3: check() on PostgreSQL answers from memory shortly after a sign of life of the worker, and later asks the database", async () => {
  const schema = newSchema();
  const store = await openSchema(schema);
  const lease = await ownRun(store);
  await query(`UPDATE ${schema}.runs SET owner = 'thief', epoch = epoch + 1`);
  await store.leases.check(lease);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 10_001 });
  onTestFinished(() => void vi.useRealTimers());
  await expect(store.leases.check(lease)).rejects.toMatchObject({ code: "lease_lost" });
});

test("J3: check() on PostgreSQL asks the database if the wall clock was set back", async () => {
  const schema = newSchema();
  const store = await openSchema(schema);
  const lease = await ownRun(store);
  await query(`UPDATE ${schema}.runs SET owner = 'thief', epoch = epoch + 1`);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3_600_000 });
  onTestFinished(() => void vi.useRealTimers());
  await expect(store.leases.check(lease)).rejects.toMatchObject({ code: "lease_lost" });
});

test("L13: isConfirmed() on PostgreSQL is false once the last confirmed sign of life is older than two thirds of the lease", async () => {
  const schema = newSchema();
  const store = await openSchema(schema, { leaseMs: 3_000 });
  await store.leases.enlist("w1");
  // No beat can be written while another session holds the lock of the table.
  const blocker = new Client({ connectionString: inject("postgresUrl") });
  await blocker.connect();
  onTestFinished(() => blocker.end());
  await blocker.query(`BEGIN; LOCK TABLE ${schema}.workers`);
  await vi.waitFor(() => expect(store.leases.isConfirmed("w1")).toBe(false), { timeout: 300_000 });
  await blocker.query("ROLLBACK");
  await vi.waitFor(() => expect(store.leases.isConfirmed("w1")).toBe(true), { timeout: 300_000 });
});

test("a PostgreSQL worker whose clock drifts claims nothing and keeps its runs, until the clock is right again", async () => {
  const store = await openSchema(newSchema(), { leaseMs: 3_000 });
  const owned = await ownRun(store);
  await createRun(store, "waiting");
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 });
  onTestFinished(() => void vi.useRealTimers());
  const refusal = { code: "invalid_argument", message: expect.stringContaining("differs by 60 s") as string };
  const none = { workerId: "w1", limit: 10, now: 0, only: [] };
  // Claims work until the first beat after the change of the clock.
  await vi.waitFor(() => expect(Promise.resolve(store.leases.claim(none))).rejects.toMatchObject(refusal), {
    timeout: 300_000,
  });
  await expect(claim(store, "w1")).rejects.toMatchObject(refusal);
  await store.leases.check(owned);
  expect(await store.journal.append(owned, { number: 1, at: 2 })).toMatchObject({ number: 1 });
  vi.useRealTimers();
  await vi.waitFor(async () => expect(await claim(store, "w1")).toHaveLength(1), { timeout: 300_000 });
});

test("L6: enlist() on PostgreSQL fails with already_exists if a worker of that name lives in another process", async () => {
  const schema = newSchema();
  const [one, other] = [
    await openSchema(schema, { leaseMs: 3_000 }),
    await openSchema(schema, { leaseMs: 3_000 }),
  ];
  await one.leases.enlist("w1");
  await expect(other.leases.enlist("w1")).rejects.toMatchObject({ code: "already_exists" });
});

test("L6: enlist() on PostgreSQL with the name of a dead worker waits for its lease and makes its runs ready", async () => {
  const schema = newSchema();
  const one = await openSchema(schema);
  const lost = await ownRun(one);
  // A dead process sends no more beats. Its row stays.
  await query(`UPDATE ${schema}.workers SET incarnation = 1, beat_at = now() - interval '14.5 seconds'`);
  const other = await openSchema(schema);
  await other.leases.enlist("w1");
  expect(await claim(other, "w1")).toMatchObject([{ runId: lost.runId, epoch: lost.epoch + 1 }]);
});

test("L1, L5: PostgreSQL workers that claim at once get different runs, and together all of them", async () => {
  const schema = newSchema();
  const stores = await Promise.all([1, 2, 3, 4].map(() => openSchema(schema)));
  const names = Array.from({ length: 24 }, (_, index) => `r${index}`);
  for (const name of names) await createRun(stores[0] as Store, name);
  const claimed: string[] = [];
  const worker = async (store: Store, workerId: string): Promise<void> => {
    await store.leases.enlist(workerId);
    for (;;) {
      const leases = await store.leases.claim({ workerId, limit: 2, now: 0 });
      if (leases.length === 0) return;
      claimed.push(...leases.map(({ runId }) => runId));
    }
  };
  await Promise.all(stores.map((store, index) => worker(store, `w${index}`)));
  // A run that another worker was about to take is skipped, so that one more round finds what is left.
  await worker(stores[0] as Store, "w0");
  expect(claimed.toSorted()).toEqual(names.map((name) => `run_${name}`).toSorted());
});

test("onChange() of another PostgreSQL process announces a new run by a notification, and by polling without one", async () => {
  const schema = newSchema();
  const [one, other] = [await openSchema(schema, { pollMs: 600_000 }), await openSchema(schema)];
  const [heard, polled]: [StoreChange[], StoreChange[]] = [[], []];
  onTestFinished(one.onChange((change) => heard.push(change)));
  const listening = `SELECT 1 FROM pg_stat_activity WHERE query = 'LISTEN "reeve:${schema}"'`;
  await vi.waitFor(async () => expect(await query(listening)).toHaveLength(1), { timeout: 300_000 });
  const runId = await createRun(other);
  await vi.waitFor(() => expect(heard).toEqual([{ kind: "new", runId, startAt: null, writer: "client" }]), {
    timeout: 300_000,
  });
  await other.leases.enlist("w2");
  const second = { kind: "new", runId: await createRun(other, "second"), startAt: null, writer: "worker" };
  await vi.waitFor(() => expect(heard).toContainEqual(second), { timeout: 300_000 });
  onTestFinished(other.onChange((change) => polled.push(change)));
  await vi.waitFor(() => expect(polled).toContainEqual({ kind: "other", owned: [] }), { timeout: 300_000 });
});

test("a run that a failed claim on PostgreSQL took is ready again for the same worker", async () => {
  const proxy = await CuttingProxy.open(inject("postgresUrl"));
  onTestFinished(() => proxy.close());
  const schema = newSchema();
  const store = await openSchema(schema, { url: proxy.url, retryForMs: 0 });
  const runId = await createRun(store);
  await store.leases.enlist("w1");
  // The server commits. The process gets no answer and cannot ask for the outcome.
  proxy.cutAfter("COMMIT\0", { isLast: true });
  await expect(claim(store, "w1")).rejects.toMatchObject({ code: "store_unavailable" });
  expect(await query(`SELECT owner FROM ${schema}.runs`)).toEqual([{ owner: "w1" }]);
  proxy.accept();
  expect(await claim(store, "w1")).toMatchObject([{ runId, epoch: 2 }]);
});

test("a PostgreSQL worker does not wait for another one that is creating the run of the same message", async () => {
  const proxy = await CuttingProxy.open(inject("postgresUrl"));
  onTestFinished(() => proxy.close());
  const schema = newSchema();
  const [first, second] = [await openSchema(schema, { url: proxy.url }), await openSchema(schema)];
  const to = formatAgentId({ name: "reader" });
  await second.inbox.deliver({ id: "m", from: null, to, body: null, sentAt: 1 });
  const take = { type: "take", agentId: to, messageIds: ["m"] } as const;
  const create = async (store: Store) =>
    store.journal.create(runRecord("a"), { number: 0, at: 1, inbox: [take] });
  const { answered, release } = proxy.holdAfter("INSERT INTO");
  const creating = create(first);
  await answered;
  expect(await create(second)).toEqual({ kind: "taken" });
  release();
  expect(await creating).toEqual({ kind: "created" });
});

test("a PostgreSQL claim that frees the runs of a failed claim leaves the runs of a claim in progress alone", async () => {
  const proxy = await CuttingProxy.open(inject("postgresUrl"));
  onTestFinished(() => proxy.close());
  const schema = newSchema();
  const store = await openSchema(schema, { url: proxy.url, retryForMs: 0, connections: 2 });
  const [first, second] = [await createRun(store, "first"), await createRun(store, "second")];
  await store.leases.enlist("w1");
  const claimOne = () => store.leases.claim({ workerId: "w1", limit: 1, now: 0 });
  const { answered, release } = proxy.holdAfter("COMMIT\0");
  const underWay = claimOne();
  await answered;
  proxy.cutAfter("COMMIT\0", { isLast: true });
  await expect(claimOne()).rejects.toMatchObject({ code: "store_unavailable" });
  proxy.accept();
  expect(await claim(store, "w1")).toMatchObject([{ runId: second, epoch: 2 }]);
  release();
  const [lease] = await underWay;
  if (lease === undefined) throw new Error("the claim took no run");
  expect(lease).toMatchObject({ runId: first, epoch: 1 });
  expect(await store.journal.append(lease, { number: 1, at: 2 })).toMatchObject({ number: 1 });
});
