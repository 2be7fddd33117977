import type { RunRecord, RunSummary, Store } from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import { agentId, ownRun, rootTask, runRecord } from "./store-fixtures.ts";

/** Tests of the rules for the record of a run that every implementation of `Journal` and `Leases` must keep. */
export function runRecordContract({ test, expect, open }: ContractHarness): void {
  const create = async (store: Store, more: Partial<RunRecord> = {}): Promise<RunRecord> => {
    const record = { ...runRecord(), ...more };
    await store.journal.create(record, { number: 0, at: record.createdAt });
    return record;
  };

  const claim = async (store: Store, now: number): Promise<readonly string[]> =>
    (await store.leases.claim({ workerId: "w1", limit: 9, now })).map(({ runId }) => runId);

  const shown = async (store: Store): Promise<Pick<RunSummary, "status" | "waitsFor"> | undefined> => {
    const [run] = (await store.journal.list()).runs;
    return run && { status: run.status, waitsFor: run.waitsFor };
  };

  test("find(), replay(), summary() and list() return kind, title, metadata and startAt as the run was created", async () => {
    const store = await open();
    const metadata = { ticket: "42", nested: { a: [1, null] }, "": "empty name", "\u0000": "\uD800" };
    const more = { kind: "compaction", title: "Sum up \u{1F600}", startAt: 7, metadata } as const;
    const record = await create(store, more);
    expect(await store.journal.find(record.runId)).toEqual(record);
    expect(await store.journal.replay(record.runId, () => undefined)).toEqual(record);
    const summary = await store.journal.summary(record.runId);
    expect({ ...summary, ...record }).toEqual(summary);
    expect((await store.journal.list()).runs).toEqual([summary]);
  });

  test("the caller's metadata object can change after create() without changing the record", async () => {
    const store = await open();
    const metadata = { ticket: "42" };
    await store.leases.enlist("w1");
    const record = { ...runRecord(), metadata };
    const claimed = { workerId: "w1", limit: 1, now: 1 };
    const first = { number: 0, at: 1 };
    await (store.journal.createAndClaim?.(record, first, undefined, claimed) ??
      store.journal.create(record, first));
    try {
      metadata.ticket = "changed";
    } catch {
      // A store may freeze the object instead of copying it.
    }
    expect((await store.journal.replay(record.runId, () => undefined)).metadata).toEqual({ ticket: "42" });
    expect((await store.journal.find(record.runId))?.metadata).toEqual({ ticket: "42" });
  });

  test("the erasure of the root task empties the metadata of the run", async () => {
    const store = await open();
    const record = await create(store, { metadata: { secret: "s3cret" } });
    await store.leases.enlist("w1");
    const lease = await store.leases.seize(record.runId, "w1");
    if (lease === undefined) throw new Error("the new run could not be seized");
    await store.journal.append(lease, { number: 1, at: 2, erases: [{ taskId: rootTask, agentId }] });
    expect((await store.journal.find(record.runId))?.metadata).toEqual({});
    expect((await store.journal.list()).runs[0]?.metadata).toEqual({});
  });

  test("L9: a run with a later startAt is pending, waits for time, and can be claimed only from then on", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const { runId } = await create(store, { createdAt: 10, startAt: 100 });
    expect(await shown(store)).toEqual({ status: "pending", waitsFor: ["time"] });
    expect((await store.journal.list({ status: "pending" })).runs.length).toBe(1);
    expect((await store.journal.list({ status: "waiting" })).runs).toEqual([]);
    expect(await store.leases.nextWakeAt(10)).toBe(100);
    expect(await claim(store, 99)).toEqual([]);
    expect(await claim(store, 100)).toEqual([runId]);
    expect(await shown(store)).toEqual({ status: "running", waitsFor: [] });
  });

  test("L9: a run whose startAt has passed when it is created is ready at once", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const { runId } = await create(store, { createdAt: 10, startAt: 10 });
    expect(await shown(store)).toEqual({ status: "pending", waitsFor: ["worker"] });
    expect(await claim(store, 10)).toEqual([runId]);
  });

  test("L9: createAndClaim() does not claim a run with a later startAt", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const record = { ...runRecord(), startAt: 100 };
    const options = { workerId: "w1", limit: 1, now: 1 };
    const creation = await (store.journal.createAndClaim?.(
      record,
      { number: 0, at: 1 },
      undefined,
      options,
    ) ?? store.journal.create(record, { number: 0, at: 1 }));
    expect(creation).toEqual({ kind: "created" });
    expect(await claim(store, 99)).toEqual([]);
  });

  test("L9: mail makes a scheduled run ready before its start, and its owner can suspend it until the start again", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const { runId } = await create(store, { startAt: 100 });
    const body = { type: "pause" } as const;
    await store.mailbox.put({ id: "m", runId, from: "x", at: 2, body });
    expect(await shown(store)).toEqual({ status: "pending", waitsFor: ["worker"] });
    const [lease] = await store.leases.claim({ workerId: "w1", limit: 1, now: 50 });
    if (lease === undefined) throw new Error("the run was not claimed");
    await store.journal.append(lease, { number: 1, at: 50, mailThrough: 0 });
    await store.leases.release(lease, { kind: "suspended", wakeAt: 100 });
    expect(await shown(store)).toEqual({ status: "pending", waitsFor: ["time"] });
    expect(await claim(store, 100)).toEqual([runId]);
  });

  test("L7: recoveries counts every death of an owner, also after new commits, and no release", async () => {
    const store = await open();
    const { runId } = await ownRun(store);
    const recoveries = async (): Promise<number | undefined> => (await store.journal.find(runId))?.recoveries;
    expect(await recoveries()).toBe(0);
    for (let deaths = 1; deaths <= 3; deaths++) {
      await store.leases.dismiss("w1");
      await store.leases.enlist("w1");
      const [lease] = await store.leases.claim({ workerId: "w1", limit: 1, now: 9 });
      if (lease === undefined) throw new Error("the run of the dead worker was not claimed");
      expect(await recoveries()).toBe(deaths);
      await store.journal.append(lease, { number: deaths, at: 9 });
      await store.leases.release(lease, { kind: "ready" });
      await store.leases.claim({ workerId: "w1", limit: 1, now: 9 });
      expect(await recoveries()).toBe(deaths);
    }
    expect((await store.journal.summary(runId))?.recoveries).toBe(3);
    expect((await store.journal.replay(runId, () => undefined)).recoveries).toBe(3);
  });
}
