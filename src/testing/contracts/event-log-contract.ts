import {
  eventDraft,
  Fault,
  formatTaskId,
  type Delta,
  type Event,
  type Guest,
  type Lease,
  type Store,
  type TaskId,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import { all, ownRun, placed, rootTask, runEnd, turnStart } from "./store-fixtures.ts";

/** Tests of the rules that every implementation of `EventLog` must keep. */
export function eventLogContract({ test, expect, open }: ContractHarness): void {
  const seqs = (items: readonly (Event | Delta)[]): unknown[] =>
    items.map((item) => ("seq" in item ? item.seq : item.type));

  const put = async (store: Store, lease: Lease, number: number, ...events: Event[]): Promise<void> => {
    await store.journal.append(lease, { number, at: number, events });
  };

  const text = ({ runId }: Lease, offset: number, piece: string): Delta => ({
    type: "message_update",
    runId,
    taskId: rootTask,
    messageSeq: 1,
    attempt: 1,
    offset,
    kind: "text",
    text: piece,
  });

  test("E1: events are read back as they were committed, numbered without gaps", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const events = [turnStart(lease.runId, 1), turnStart(lease.runId, 2), turnStart(lease.runId, 3)];
    await put(store, lease, 1, ...events.slice(0, 2));
    await put(store, lease, 2, ...events.slice(2));
    const read = await all(store.events.read(lease.runId));
    expect(seqs(read)).toEqual([0, 1, 2, 3]);
    expect(read.slice(1)).toEqual(events);
    expect(await store.events.lastSeq(lease.runId)).toBe(3);
  });

  test("E1: keep() returns the events so far, which stay readable after later commits and after the store is closed", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await put(store, lease, 1, turnStart(lease.runId, 1), turnStart(lease.runId, 2));
    const before = await all(store.events.read(lease.runId));
    const kept = await store.events.keep(lease.runId);
    await put(store, lease, 2, turnStart(lease.runId, 3));
    await store.close();
    expect(kept()).toEqual(before);
    expect(seqs(kept())).toEqual([0, 1, 2]);
  });

  test("E1: verify() accepts the current and earlier heads of the chain and rejects an unknown head", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const before = await store.events.verify(lease.runId);
    await put(store, lease, 1, turnStart(lease.runId, 1));
    const after = await store.events.verify(lease.runId);
    expect([before.ok, after.ok]).toEqual([true, true]);
    if (!before.ok || !after.ok) return;
    expect(before.head === after.head).toBe(false);
    expect([before.sinceHead, after.sinceHead]).toEqual([null, null]);
    expect(await store.events.verify(lease.runId, after.head)).toEqual({ ...after, sinceHead: 0 });
    expect(await store.events.verify(lease.runId, before.head)).toEqual({ ...after, sinceHead: 1 });
    expect((await store.events.verify(lease.runId, "made up")).ok).toBe(false);
  });

  test("E3: read() starts at any seq and ends at the current end of the log", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await put(store, lease, 1, turnStart(lease.runId, 1), turnStart(lease.runId, 2));
    expect(seqs(await all(store.events.read(lease.runId, 1)))).toEqual([1, 2]);
    expect(seqs(await all(store.events.read(lease.runId, 9)))).toEqual([]);
  });

  test("E3: tail() yields stored and new events once each and ends after run_end", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await put(store, lease, 1, turnStart(lease.runId, 1));
    const tail = all(store.events.tail(lease.runId));
    await put(store, lease, 2, turnStart(lease.runId, 2));
    await put(store, lease, 3, turnStart(lease.runId, 3), runEnd(lease.runId, 4));
    expect(seqs(await tail)).toEqual([0, 1, 2, 3, 4]);
    expect(seqs(await all(store.events.tail(lease.runId, { fromSeq: 3 })))).toEqual([3, 4]);
    expect(seqs(await all(store.events.tail(lease.runId, { fromSeq: 5 })))).toEqual([]);
  });

  test("E3: tail() with types yields only stored and new events of those types and ends with the run", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await put(store, lease, 1, turnStart(lease.runId, 1));
    const ends = all(store.events.tail(lease.runId, { types: ["run_end"] }));
    const turns = all(store.events.tail(lease.runId, { fromSeq: 1, types: ["turn_start"] }));
    store.events.putDelta(lease, text(lease, 0, "Hel"));
    await put(store, lease, 2, turnStart(lease.runId, 2));
    await put(store, lease, 3, turnStart(lease.runId, 3), runEnd(lease.runId, 4));
    expect(seqs(await ends)).toEqual([4]);
    expect(seqs(await turns)).toEqual([1, 2, 3]);
  });

  test("E3: a hundred tails see the same events, also when another tail is closed early", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const stayers = Array.from({ length: 100 }, () => all(store.events.tail(lease.runId)));
    for await (const event of store.events.tail(lease.runId)) if ("seq" in event) break;
    await put(store, lease, 1, turnStart(lease.runId, 1), runEnd(lease.runId, 2));
    const seen = await Promise.all(stayers);
    expect(seen.map((items) => seqs(items).join())).toEqual(Array.from({ length: 100 }, () => "0,1,2"));
  });

  test("E3: aborting the signal ends a waiting tail", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const controller = new AbortController();
    const tail = all(store.events.tail(lease.runId, { signal: controller.signal }));
    controller.abort();
    expect(seqs(await tail)).toEqual([0]);
  });

  test("tail() yields all stored events and then fails when the runtime or connection that it belongs to has ended", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const fault = new Fault("closed", "over");
    const guests = new Set<Guest>();
    const life = {
      fault: undefined as Fault | undefined,
      join: (guest: Guest) => void guests.add(guest),
      leave: (guest: Guest) => void guests.delete(guest),
    };
    const tail = (): AsyncIterator<Event | Delta> =>
      store.events.tail(lease.runId, { life })[Symbol.asyncIterator]();
    const [waiting, behind] = [tail(), tail()];
    await waiting.next();
    await behind.next();
    const next = waiting.next().catch((error: unknown) => error);
    await put(store, lease, 1, turnStart(lease.runId, 1));
    await next;
    const last = waiting.next().catch((error: unknown) => error);
    life.fault = fault;
    for (const guest of guests) guest.lifeEnded(fault);
    expect(await last).toBe(fault);
    expect(await waiting.next()).toEqual({ value: undefined, done: true });
    const rest = [(await behind.next()).value as Event, await behind.next().catch((error: unknown) => error)];
    expect(rest).toEqual([turnStart(lease.runId, 1), fault]);
    expect(guests.size).toBe(0);
  });

  test("E2: deltas reach early and late tails until their message is recorded", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await put(
      store,
      lease,
      1,
      placed(lease.runId, 1, eventDraft("message_start", { role: "assistant", attempt: 1 })),
    );
    store.events.putDelta(lease, text(lease, 0, "Hel"));
    const late = store.events.tail(lease.runId)[Symbol.asyncIterator]();
    const seen = [(await late.next()).value, (await late.next()).value, (await late.next()).value];
    expect(seqs(seen as (Event | Delta)[])).toEqual([0, 1, "message_update"]);
    store.events.putDelta(lease, text(lease, 3, "lo"));
    expect(((await late.next()).value as { text: string }).text).toBe("lo");
    const message = { role: "assistant", content: [{ type: "text", text: "Hello" }] } as const;
    await put(
      store,
      lease,
      2,
      placed(lease.runId, 2, eventDraft("message_end", { message })),
      runEnd(lease.runId, 3),
    );
    expect(seqs(await all(store.events.tail(lease.runId)))).toEqual([0, 1, 2, 3]);
    await late.return?.();
  });

  test("E2: a late tail receives the full text so far of every message in progress", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const written = new Map<TaskId, string>();
    const write = (taskId: TaskId, piece: string): void => {
      const before = written.get(taskId) ?? "";
      store.events.putDelta(lease, { ...text(lease, before.length, piece), taskId });
      written.set(taskId, before + piece);
    };
    const [ann, bob] = [formatTaskId(1), formatTaskId(2)];
    for (const [taskId, piece] of [
      [ann, "Hel"],
      [bob, "Good"],
      [ann, "lo"],
      [bob, "bye"],
      [ann, "!"],
    ] as const)
      write(taskId, piece);
    const read = new Map<TaskId, string>();
    const isWhole = (): boolean => [...written].every(([taskId, whole]) => read.get(taskId) === whole);
    for await (const item of store.events.tail(lease.runId, { fromSeq: 1 })) {
      if (item.type !== "message_update") continue;
      const before = read.get(item.taskId) ?? "";
      expect(item.offset).toBe(before.length);
      read.set(item.taskId, before + item.text);
      if (isWhole()) break;
    }
    expect(isWhole()).toBe(true);
  });

  test("E2: a delta from an owner that lost its lease is dropped", async () => {
    const store = await open();
    const lost = await ownRun(store);
    const lease = await store.leases.seize(lost.runId, "w2");
    store.events.putDelta(lost, text(lost, 0, "ghost"));
    if (lease === undefined) throw new Error("the run could not be seized");
    await put(store, lease, 1, runEnd(lost.runId, 1));
    expect(seqs(await all(store.events.tail(lost.runId)))).toEqual([0, 1]);
  });

  test("reading the log of a deleted run fails with not_found", async () => {
    const store = await open();
    const { runId } = await ownRun(store);
    await store.journal.delete(runId);
    await expect(all(store.events.read(runId))).rejects.toMatchObject({ code: "not_found" });
    await expect(store.events.lastSeq(runId)).rejects.toMatchObject({ code: "not_found" });
  });
}
