import {
  formatAgentId,
  type Lease,
  type ReadyOptions,
  type RunId,
  type Store,
} from "../../../kernel/index.ts";
import type { ContractHarness } from "../contract-harness.ts";
import { agentId, createRun, ownRun, runRecord } from "../store-fixtures.ts";

/** Tests of the parts of `Leases` for an engine that decides itself which worker executes a run. */
export function takeOverContract({ test, expect, open }: ContractHarness): void {
  const takeOver = async (
    store: Store,
    runId: RunId,
    { workerId = "w2", suspended = true }: { readonly workerId?: string; readonly suspended?: boolean } = {},
  ): Promise<Lease | undefined> => {
    const only = [runId];
    const choice = { suspended, ended: true };
    const [lease] = await store.leases.claim({ workerId, limit: 1, now: 0, only, takeOver: choice });
    return lease;
  };

  test("L15: claim() with takeOver rejects with run_owned while a live worker owns the run, and changes nothing", async () => {
    const store = await open();
    const owned = await ownRun(store);
    await store.leases.enlist("w2");
    const claim = { workerId: "w2", limit: 1, now: 0, only: [owned.runId] };
    for (const suspended of [true, false])
      for (const ended of [true, false])
        await expect(
          (async () => store.leases.claim({ ...claim, takeOver: { suspended, ended } }))(),
        ).rejects.toMatchObject({ code: "run_owned", details: { runId: owned.runId, owner: "w1" } });
    expect(await store.leases.claim(claim)).toEqual([]);
    await store.leases.check(owned);
    await store.journal.append(owned, { number: 1, at: 2 });
    expect((await store.journal.find(owned.runId))?.recoveries).toBe(0);
    await store.leases.release(owned, { kind: "ready" });
    const lease = await takeOver(store, owned.runId);
    expect([lease?.epoch, lease?.workerId, lease?.recoveries]).toEqual([owned.epoch + 1, "w2", undefined]);
  });

  test("L1, L7, L15: claim() with takeOver takes the run of a dead worker, shuts that worker out and counts the recovery", async () => {
    const store = await open();
    const lost = await ownRun(store);
    await store.leases.dismiss("w1");
    await store.leases.enlist("w2");
    const lease = await takeOver(store, lost.runId);
    expect([lease?.workerId, lease?.recoveries]).toEqual(["w2", 1]);
    expect((lease?.epoch ?? 0) > lost.epoch).toBe(true);
    await expect(store.leases.check(lost)).rejects.toMatchObject({ code: "lease_lost" });
    await expect(store.journal.append(lost, { number: 1, at: 2 })).rejects.toMatchObject({
      code: "lease_lost",
    });
    expect((await store.journal.find(lost.runId))?.recoveries).toBe(1);
  });

  test("L15: claim() with takeOver takes a suspended run without a recovery, and no ended, unknown or excluded run", async () => {
    const store = await open();
    const [sleeps, ended, other] = [
      await ownRun(store, "a"),
      await ownRun(store, "b"),
      await ownRun(store, "c"),
    ];
    await store.leases.release(sleeps, { kind: "suspended", wakeAt: 100 });
    await store.leases.release(ended, { kind: "ended" });
    await store.leases.enlist("w2");
    expect(await takeOver(store, sleeps.runId, { suspended: false })).toBeUndefined();
    const lease = await takeOver(store, sleeps.runId);
    expect([lease?.runId, lease?.recoveries]).toEqual([sleeps.runId, undefined]);
    expect(await takeOver(store, ended.runId)).toBeUndefined();
    expect(await takeOver(store, runRecord("unknown").runId)).toBeUndefined();
    await store.leases.release(other, { kind: "suspended", wakeAt: 100 });
    const choice = { suspended: true, ended: true };
    const claim = { workerId: "w2", limit: 1, now: 0, only: [other.runId], takeOver: choice };
    const agents = [{ agentId: formatAgentId({ name: "stranger" }) }];
    expect(await store.leases.claim({ ...claim, agents })).toEqual([]);
    expect(await store.leases.claim({ ...claim, except: [other.runId] })).toEqual([]);
    expect((await store.leases.claim({ ...claim, agents: [{ agentId }] })).length).toBe(1);
  });

  const ready = async (store: Store, more: Partial<ReadyOptions> = {}): Promise<readonly RunId[]> =>
    store.leases.findReady({ now: 0, limit: 10, ...more });

  test("L16: findReady() returns the runs that are new, due or left by a dead worker, the oldest first", async () => {
    const store = await open();
    const left = await ownRun(store, "a");
    await store.leases.dismiss("w1");
    await store.leases.enlist("w2");
    const fresh = await createRun(store, "b");
    const own = async (name: string): Promise<Lease> => {
      const only = [await createRun(store, name)];
      const [lease] = await store.leases.claim({ workerId: "w2", limit: 1, now: 0, only });
      return lease as Lease;
    };
    const [due, ended] = [await own("c"), await own("d")];
    await own("e");
    await store.leases.release(due, { kind: "suspended", wakeAt: 100 });
    await store.leases.release(ended, { kind: "ended" });
    expect(await ready(store, { now: 99 })).toEqual([left.runId, fresh]);
    expect(await ready(store, { now: 100 })).toEqual([left.runId, fresh, due.runId]);
    expect(await ready(store, { now: 100, limit: 2 })).toEqual([left.runId, fresh]);
    expect(await ready(store, { now: 100, after: left.runId, limit: 1 })).toEqual([fresh]);
    expect(await ready(store, { now: 100, after: due.runId })).toEqual([]);
    expect(await ready(store, { after: runRecord("unknown").runId, limit: 1 })).toEqual([left.runId]);
    expect(await ready(store, { now: 100, agents: [{ agentName: "stranger" }] })).toEqual([]);
    const wanted = await ready(store, { now: 100, agents: [{ agentName: "tester" }] });
    expect(wanted).toEqual([left.runId, fresh, due.runId]);
  });

  test("L7, L16: findReady() changes neither the epoch nor the recoveries of a run", async () => {
    const store = await open();
    const lost = await ownRun(store);
    await store.leases.dismiss("w1");
    await store.leases.enlist("w2");
    for (let count = 0; count < 3; count++) expect(await ready(store)).toEqual([lost.runId]);
    expect((await store.journal.find(lost.runId))?.recoveries).toBe(0);
    const [lease] = await store.leases.claim({ workerId: "w2", limit: 1, now: 0 });
    expect([lease?.epoch, lease?.recoveries]).toEqual([lost.epoch + 1, 1]);
  });
}
