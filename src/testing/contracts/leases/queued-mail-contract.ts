import { Fault, formatSessionId, type Lease } from "../../../kernel/index.ts";
import type { ContractHarness } from "../contract-harness.ts";
import { runEnd, runRecord } from "../store-fixtures.ts";
import { claim, claimed, create, end, first, mailTo, only, slots, standing } from "./flow-fixtures.ts";

/** Tests of L17 and L18: mail to runs that wait for their turn. */
export function queuedMailContract({ test, expect, open }: ContractHarness): void {
  test("L17: mail makes a queued run ready, its lease says that it is queued, and its release queues it again", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    await create(store, "a", slots("k", 1));
    const a = only(await claim(store));
    const b = await create(store, "b", slots("k", 1));
    await create(store, "c", slots("k", 1));
    expect(await claimed(store)).toEqual([]);
    await store.mailbox.put(mailTo(b));
    const queued = only(await claim(store));
    expect({ runId: queued.runId, isQueued: queued.isQueued }).toEqual({ runId: b, isQueued: true });
    await store.journal.append(queued, { number: 1, at: 2, mailThrough: 0 });
    await store.leases.release(queued, { kind: "suspended", wakeAt: null });
    expect(await claimed(store)).toEqual([]);
    expect(await standing(store, b)).toEqual({ status: "pending", waitsFor: ["queue"] });
    await end(store, a);
    const admitted = only(await claim(store));
    expect({ runId: admitted.runId, isQueued: admitted.isQueued }).toEqual({ runId: b, isQueued: undefined });
  });

  test("L17: no run overtakes a queued run that has mail, before and while its owner reads the mail", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    await create(store, "a", slots("k", 1));
    const a = only(await claim(store));
    const b = await create(store, "b", slots("k", 1));
    const c = await create(store, "c", slots("k", 3));
    expect(await claimed(store)).toEqual([]);
    await store.mailbox.put(mailTo(b));
    expect(await claimed(store, { only: [c] })).toEqual([]);
    const reading = only(await claim(store));
    await end(store, a);
    expect(await claimed(store)).toEqual([]);
    await store.journal.append(reading, { number: 1, at: 2, mailThrough: 0 });
    await store.leases.release(reading, { kind: "suspended", wakeAt: null });
    const last = await claim(store);
    expect(last.map(({ runId, isQueued }) => ({ runId, isQueued }))).toEqual([
      { runId: b, isQueued: undefined },
      { runId: c, isQueued: undefined },
    ]);
  });

  test("L17: a queued run that has mail takes its place in its turn, also if no worker takes the run", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    await create(store, "a", slots("k", 1));
    const a = only(await claim(store));
    const b = await create(store, "b", slots("k", 1));
    await create(store, "c", slots("k", 2));
    expect(await claimed(store)).toEqual([]);
    await store.mailbox.put(mailTo(b));
    await end(store, a);
    expect(await claimed(store, { except: [b] })).toEqual(["c"]);
    const next = only(await claim(store));
    expect({ runId: next.runId, isQueued: next.isQueued }).toEqual({ runId: b, isQueued: undefined });
  });

  test("L17: a queued run whose owner dies while it reads mail keeps its turn, and delays no other run after that", async () => {
    const store = await open();
    for (const worker of ["w1", "w2"]) await store.leases.enlist(worker);
    for (const name of ["a", "b"]) await create(store, name, slots("k", 2));
    const [a, b] = await claim(store);
    const c = await create(store, "c", slots("k", 2));
    await create(store, "d", slots("k", 2));
    expect(await claimed(store)).toEqual([]);
    await store.mailbox.put(mailTo(c));
    expect(only(await claim(store, {}, "w2")).isQueued).toBe(true);
    await end(store, a as Lease);
    expect(await claimed(store)).toEqual([]);
    await store.leases.dismiss("w2");
    const claimOthers = async (): Promise<string[]> => [
      ...(await claimed(store, { except: [c] })),
      ...(await claimed(store, { except: [c] })),
    ];
    expect(await claimOthers()).toEqual([]);
    await end(store, b as Lease);
    expect(await claimOthers()).toEqual(["d"]);
    const next = only(await claim(store));
    expect({ runId: next.runId, isQueued: next.isQueued }).toEqual({ runId: c, isQueued: undefined });
  });

  test("L17: a queued run that is cancelled leaves the queue, and the next run has its turn", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    await create(store, "a", slots("k", 1));
    const a = only(await claim(store));
    const b = await create(store, "b", slots("k", 1));
    await create(store, "c", slots("k", 1));
    await store.mailbox.put(mailTo(b));
    const queued = only(await claim(store));
    await end(store, a);
    await store.journal.append(queued, { number: 1, at: 2, mailThrough: 0, events: [runEnd(b, 0)] });
    await store.leases.release(queued, { kind: "ended" });
    expect(await claimed(store)).toEqual(["c"]);
  });

  test("L18: mail makes a run ready that was released as queued; a worker that has lost its lease gives it no limits", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const flow = slots("k", 1);
    await create(store, "a", flow);
    await claim(store);
    const record = { ...runRecord("b"), sessionId: formatSessionId("b") };
    await store.journal.create(record, first);
    const lost = only(await claim(store));
    const lease = (await store.leases.seize(record.runId, "w1")) as Lease;
    const refused = Promise.resolve(store.leases.release(lost, { kind: "queued", flow }));
    expect(await refused.catch((error: unknown) => Fault.from(error).code)).toBe("lease_lost");
    expect((await store.journal.find(record.runId))?.flow).toBe(undefined);
    await store.mailbox.put({ runId: record.runId, id: "m", from: "test", at: 1, body: { type: "pause" } });
    await store.leases.release(lease, { kind: "queued", flow });
    const woken = only(await claim(store));
    expect([woken.runId, woken.isQueued]).toEqual([record.runId, true]);
  });
}
