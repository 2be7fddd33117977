import { formatAgentId, type Lease, type Rest, type Store } from "../../../kernel/index.ts";
import type { ContractHarness } from "../contract-harness.ts";
import { createRun, ownRun, rootTask, runRecord } from "../store-fixtures.ts";

/** Tests of the rules that every implementation of `Leases` must keep. */
export function leaseContract({ test, expect, open }: ContractHarness): void {
  const claim = async (store: Store, workerId: string, now = 0): Promise<readonly Lease[]> =>
    store.leases.claim({ workerId, limit: 10, now });

  const claimed = async (store: Store, workerId: string, now = 0): Promise<string[]> =>
    (await claim(store, workerId, now)).map(({ runId }) => runId);

  const left = async (store: Store, rest: Rest): Promise<Lease> => {
    const lease = await ownRun(store);
    await store.leases.release(lease, rest);
    await store.leases.enlist("w2");
    return lease;
  };

  test("L2: a new run is claimed once and by one worker", async () => {
    const store = await open();
    const runId = await createRun(store);
    await store.leases.enlist("w1");
    await store.leases.enlist("w2");
    expect(await claimed(store, "w1")).toEqual([runId]);
    expect(await claimed(store, "w2")).toEqual([]);
  });

  test("L2: claim() returns at most as many runs as its option limit", async () => {
    const store = await open();
    for (const name of ["a", "b", "c"]) await createRun(store, name);
    await store.leases.enlist("w1");
    expect((await store.leases.claim({ workerId: "w1", limit: 2, now: 0 })).length).toBe(2);
    expect((await store.leases.claim({ workerId: "w1", limit: 2, now: 0 })).length).toBe(1);
  });

  test("L2: the runs of a dismissed worker are claimed by the next worker at a higher epoch", async () => {
    const store = await open();
    const lost = await ownRun(store);
    await store.leases.enlist("w2");
    expect(await claimed(store, "w2")).toEqual([]);
    await store.leases.dismiss("w1");
    const [lease] = await claim(store, "w2");
    expect(lease?.runId).toBe(lost.runId);
    expect((lease?.epoch ?? 0) > lost.epoch).toBe(true);
    await expect(store.leases.check(lost)).rejects.toMatchObject({ code: "lease_lost" });
  });

  test("L6: a worker that enlists under the name of a dismissed worker does not inherit its runs", async () => {
    const store = await open();
    const lost = await ownRun(store);
    await store.leases.dismiss("w1");
    await store.leases.enlist("w1");
    await expect(store.leases.check(lost)).rejects.toMatchObject({ code: "lease_lost" });
    await store.leases.enlist("w2");
    const [lease] = await claim(store, "w2");
    expect(lease?.runId).toBe(lost.runId);
    expect((lease?.epoch ?? 0) > lost.epoch).toBe(true);
  });

  test("L6: enlisting a worker twice has the same effect as once", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await store.leases.enlist("w1");
    await store.leases.check(lease);
    expect(await claimed(store, "w1")).toEqual([]);
  });

  test("L2: an ended run is never claimed or seized", async () => {
    const store = await open();
    const { runId } = await left(store, { kind: "ended" });
    expect(await claimed(store, "w2", 1e15)).toEqual([]);
    expect(await store.leases.seize(runId, "w2")).toBeUndefined();
  });

  test("L2: a suspended run is claimed from its wake time on and not before", async () => {
    const store = await open();
    const { runId } = await left(store, { kind: "suspended", wakeAt: 100 });
    expect(await claimed(store, "w2", 99)).toEqual([]);
    expect(await claimed(store, "w2", 100)).toEqual([runId]);
  });

  test("L8: nextWakeAt() returns the earliest later wake time of the suspended runs, or null", async () => {
    const store = await open();
    expect(await store.leases.nextWakeAt(0)).toBe(null);
    const leases: Lease[] = [];
    for (const name of ["a", "b", "c"]) leases.push(await ownRun(store, name));
    for (const [index, wakeAt] of [200, 100, null].entries())
      await store.leases.release(leases[index] as Lease, { kind: "suspended", wakeAt });
    await store.leases.enlist("w2");
    const times: (number | null)[] = [];
    for (const now of [0, 99, 100, 200]) times.push(await store.leases.nextWakeAt(now));
    expect(times).toEqual([100, 100, 200, null]);
    expect(await claimed(store, "w2", 100)).toEqual([leases[1]?.runId]);
    expect(await store.leases.nextWakeAt(0)).toBe(200);
  });

  test("L2: a run that is released as ready is claimed at once", async () => {
    const store = await open();
    const { runId } = await left(store, { kind: "ready" });
    expect(await claimed(store, "w2")).toEqual([runId]);
  });

  test("L3: mail wakes a released run, also an ended one, whether it arrived before or after the release", async () => {
    const rests = [{ kind: "suspended", wakeAt: null }, { kind: "ended" }] as const;
    for (const [early, rest] of rests.flatMap((each) => [[true, each] as const, [false, each] as const])) {
      const store = await open();
      const lease = await ownRun(store);
      const { runId } = lease;
      const body = { type: "resolve", taskId: rootTask, wait: "x", value: 1 } as const;
      const put = (): Promise<boolean> => store.mailbox.put({ id: "m", runId, from: "x", at: 1, body });
      if (early) await put();
      await store.leases.release(lease, rest);
      if (!early) expect(await claimed(store, "w1")).toEqual([]);
      if (!early) await put();
      expect(await claimed(store, "w1")).toEqual([runId]);
    }
  });

  test("L1: a worker that seizes a run shuts out its owner: check() and release() of the owner fail with lease_lost", async () => {
    const store = await open();
    const lost = await ownRun(store);
    const lease = await store.leases.seize(lost.runId, "w2");
    await expect(store.leases.check(lost)).rejects.toMatchObject({ code: "lease_lost" });
    await expect(store.leases.release(lost, { kind: "ended" })).rejects.toMatchObject({ code: "lease_lost" });
    if (lease === undefined) throw new Error("the run could not be seized");
    await store.leases.check(lease);
  });

  test("L4: a released lease can be neither checked nor released again", async () => {
    const store = await open();
    const lease = await left(store, { kind: "ready" });
    await expect(store.leases.check(lease)).rejects.toMatchObject({ code: "lease_lost" });
    await expect(store.leases.release(lease, { kind: "ended" })).rejects.toMatchObject({
      code: "lease_lost",
    });
    expect(await claimed(store, "w2")).toEqual([lease.runId]);
  });

  /** Lets a worker claim the run and crash. Returns the number of recoveries in the lease. */
  const claimAndDie = async (store: Store, workerId: string): Promise<number> => {
    const [lease] = await claimBy(store, workerId);
    await store.leases.dismiss(workerId);
    return lease?.recoveries ?? 0;
  };
  const claimBy = async (store: Store, workerId: string): Promise<readonly Lease[]> => {
    await store.leases.enlist(workerId);
    return claim(store, workerId);
  };

  test("L7: a worker that dies without a commit adds one to the recoveries of the next lease of its run", async () => {
    const store = await open();
    await createRun(store);
    const counts: number[] = [];
    for (const name of ["v1", "v2", "v3", "v4"]) counts.push(await claimAndDie(store, name));
    expect(counts).toEqual([0, 1, 2, 3]);
  });

  test("L7: a commit between two deaths starts the count again", async () => {
    const store = await open();
    await createRun(store);
    expect([await claimAndDie(store, "v1"), await claimAndDie(store, "v2")]).toEqual([0, 1]);
    const [lease] = await claimBy(store, "v3");
    if (lease === undefined) throw new Error("the run could not be claimed");
    expect(lease.recoveries).toBe(2);
    await store.journal.append(lease, { number: 1, at: 2 });
    await store.leases.dismiss("v3");
    expect([await claimAndDie(store, "v4"), await claimAndDie(store, "v5")]).toEqual([1, 2]);
  });

  test("L7: a release by a live worker does not count as a recovery, and starts the count again unless the run was not loaded", async () => {
    const rests = [
      { kind: "ready" },
      { kind: "suspended", wakeAt: 0 },
      { kind: "unloaded", wakeAt: 0 },
    ] as const;
    for (const rest of rests) {
      const store = await open();
      await createRun(store);
      await store.leases.enlist("w1");
      const releaseAndCount = async (): Promise<number | undefined> => {
        const [lease] = await claim(store, "w1");
        if (lease !== undefined) await store.leases.release(lease, rest);
        return lease?.recoveries;
      };
      expect([await releaseAndCount(), await releaseAndCount()]).toEqual([undefined, undefined]);
      await claimAndDie(store, "v1");
      const kept = rest.kind === "unloaded" ? 1 : undefined;
      expect([await releaseAndCount(), await releaseAndCount()]).toEqual([1, kept]);
      await claimAndDie(store, "v2");
      expect(await releaseAndCount()).toBe(kept === undefined ? 1 : 2);
    }
  });

  test("L7: an unloaded run is claimed from its wake time on, and at once if it has mail", async () => {
    const store = await open();
    const { runId } = await left(store, { kind: "unloaded", wakeAt: 100 });
    expect(await claimed(store, "w2", 99)).toEqual([]);
    const [lease] = await claim(store, "w2", 100);
    await store.leases.release(lease as Lease, { kind: "unloaded", wakeAt: 200 });
    expect(await claimed(store, "w2", 100)).toEqual([]);
    await store.mailbox.put({ id: "m", runId, from: "x", at: 1, body: { type: "resume" } });
    expect(await claimed(store, "w2", 100)).toEqual([runId]);
  });

  test("L7: the lease names the first worker that was lost since the last commit, and haveEnded() knows that its process ended", async () => {
    const store = await open();
    await createRun(store);
    for (const name of ["v1", "v2"]) await claimAndDie(store, name);
    const [lease] = await claimBy(store, "v3");
    if (lease?.lostOwner === undefined) throw new Error("the lease names no lost owner");
    expect([lease.lostOwner.workerId, lease.lostOwner.hasEnded]).toEqual(["v1", true]);
    expect([typeof lease.lostOwner.at, typeof lease.lostAt]).toEqual(["number", "number"]);
    expect(await store.leases.haveEnded([lease.lostOwner])).toEqual([true]);
    expect(await store.leases.haveEnded([])).toEqual([]);
    await store.journal.append(lease, { number: 1, at: 2 });
    await store.leases.dismiss("v3");
    const [next] = await claimBy(store, "v4");
    expect(next?.lostOwner?.workerId).toBe("v3");
    if (next !== undefined) await store.leases.release(next, { kind: "ready" });
    const [last] = await claim(store, "v4");
    expect([last?.recoveries, last?.lostOwner]).toEqual([undefined, undefined]);
  });

  test("L7: a run that was released after a new commit has no recoveries", async () => {
    const store = await open();
    await createRun(store);
    await claimAndDie(store, "v1");
    const [lease] = await claimBy(store, "w1");
    if (lease === undefined) throw new Error("the run could not be claimed");
    await store.journal.append(lease, { number: 1, at: 2 });
    await store.leases.release(lease, { kind: "ready" });
    expect((await claim(store, "w1"))[0]?.recoveries).toBeUndefined();
  });

  test("L6, L7: a worker that enlists under the name of a dead worker adds one recovery", async () => {
    const store = await open();
    await createRun(store);
    await claimAndDie(store, "w1");
    const [lease] = await claimBy(store, "w1");
    expect(lease?.recoveries).toBe(1);
    const [first, second] = [await claim(store, "w1"), await store.leases.seize(runRecord().runId, "w1")];
    expect([first.length, second?.recoveries]).toEqual([0, 1]);
  });

  test("a worker that claims a run again after releasing it gets a new epoch", async () => {
    const store = await open();
    const lease = await left(store, { kind: "ready" });
    const [again] = await claim(store, "w1");
    expect((again?.epoch ?? 0) > lease.epoch).toBe(true);
  });

  /** Returns the optional methods that combine two writes, or `undefined` if the store does not have them. */
  const together = (store: Store) => {
    const createAndClaim = store.journal.createAndClaim?.bind(store.journal);
    const appendAndRelease = store.journal.appendAndRelease?.bind(store.journal);
    return createAndClaim && appendAndRelease && { createAndClaim, appendAndRelease };
  };
  const first = { number: 0, at: 1 };
  const forW1 = { workerId: "w1", limit: 1, now: 5 };

  test("L1, L5: createAndClaim() claims the new run only if it would be claimed next", async () => {
    const store = await open();
    const can = together(store);
    if (can === undefined) return;
    await store.leases.enlist("w1");
    const [a, b, c, d] = [runRecord("a"), runRecord("b"), runRecord("c"), runRecord("d")];
    const lease = { runId: a.runId, epoch: 1, workerId: "w1" };
    expect(await can.createAndClaim(a, first, undefined, forW1)).toEqual({ kind: "created", lease });
    await store.leases.check(lease);
    expect(await claimed(store, "w2")).toEqual([]);
    await store.journal.append(lease, { number: 1, at: 2 });
    expect(await can.createAndClaim(a, first, undefined, forW1)).toEqual({ kind: "exists" });
    const others = [{ agentId: formatAgentId({ name: "other" }) }];
    expect(await can.createAndClaim(b, first, undefined, { ...forW1, agents: others })).toEqual({
      kind: "created",
    });
    expect(await can.createAndClaim(c, first, undefined, forW1)).toEqual({ kind: "created" });
    expect(await claimed(store, "w1")).toEqual([b.runId, c.runId]);
    await store.leases.release(lease, { kind: "suspended", wakeAt: 5 });
    expect(await can.createAndClaim(d, first, undefined, forW1)).toEqual({ kind: "created" });
    expect(await claimed(store, "w1", 5)).toEqual([a.runId, d.runId]);
  });

  test("L3, L4: appendAndRelease() has the same effect as append() followed by release()", async () => {
    const store = await open();
    const can = together(store);
    if (can === undefined) return;
    const lease = await ownRun(store);
    const last = { number: 1, at: 2 };
    const lost = { ...lease, epoch: 0 };
    await expect(can.appendAndRelease(lost, last, undefined, { kind: "ended" })).rejects.toMatchObject({
      code: "lease_lost",
    });
    await can.appendAndRelease(lease, last, undefined, { kind: "ended" });
    await expect(store.leases.check(lease)).rejects.toMatchObject({ code: "lease_lost" });
    expect(await claimed(store, "w1")).toEqual([]);
    const other = await ownRun(store, "b");
    await store.mailbox.put({ id: "m", runId: other.runId, from: "a", at: 1, body: { type: "pause" } });
    await can.appendAndRelease(other, last, undefined, { kind: "ended" });
    expect(await claimed(store, "w1")).toEqual([other.runId]);
    const gap = await ownRun(store, "c");
    await expect(
      can.appendAndRelease(gap, { number: 7, at: 2 }, undefined, { kind: "ended" }),
    ).rejects.toMatchObject({ code: "invalid_argument" });
    await store.leases.check(gap);
  });
}
