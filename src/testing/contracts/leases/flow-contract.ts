import {
  formatSessionId,
  Priority,
  stateRecord,
  type ClaimOptions,
  type Commit,
  type Event,
  type JsonValue,
  type Lease,
  type RunCollection,
  type RunFlow,
  type RunId,
  type Store,
} from "../../../kernel/index.ts";
import type { ContractHarness } from "../contract-harness.ts";
import { rootTask, runEnd, runRecord } from "../store-fixtures.ts";
import {
  claim,
  claimed,
  create,
  end,
  first,
  mailTo,
  names,
  only,
  slots,
  standing,
  type More,
} from "./flow-fixtures.ts";

/** A limit of starts within 100 ms. */
function starts(key: string, limit: number): RunFlow {
  return { rate: { name: "order", key, limit, perMs: 100 } };
}

/** Tests of L17 and L19: limits of concurrency and rate, and calls of objects. */
export function flowContract({ test, expect, open, reopen }: ContractHarness): void {
  test("L17: claim() returns at most as many runs of a key as its limit, and later runs in order as earlier ones end", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    for (const name of ["a", "b", "c", "d"]) await create(store, name, slots("k", 2));
    const [a, b] = await claim(store);
    expect(names([a as Lease, b as Lease])).toEqual(["a", "b"]);
    expect(await claimed(store)).toEqual([]);
    await end(store, b as Lease);
    const c = await claim(store);
    expect(names(c)).toEqual(["c"]);
    await end(store, a as Lease);
    await end(store, only(c));
    expect(await claimed(store)).toEqual(["d"]);
  });

  test("L17: a queued run is listed as pending and waiting for its turn, and its record keeps its limits", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    await create(store, "a", slots("k", 1));
    const b = await create(store, "b", slots("k", 1));
    await claim(store);
    expect(await standing(store, b)).toEqual({ status: "pending", waitsFor: ["queue"] });
    const { runs } = await store.journal.list({ status: "pending" });
    expect(runs.map(({ runId }) => runId)).toEqual([b]);
    expect(await store.journal.count({ status: "pending" })).toBe(1);
    expect((await store.journal.find(b))?.flow).toEqual(slots("k", 1));
    expect(await store.leases.countReady(0, 10)).toBe(0);
  });

  test("L17: the runs of one key delay neither those of another key nor those of another tenant", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    for (let index = 0; index < 5; index++) await create(store, `a${index}`, slots("a", 1));
    await create(store, "b", slots("b", 1));
    await create(store, "t", slots("a", 1), { tenantId: "acme" });
    expect((await claimed(store)).toSorted()).toEqual(["a0", "b", "t"]);
  });

  test("L17: of the queued runs of a key, the run with the higher priority comes first, then the older run", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    await create(store, "a", slots("k", 1));
    const a = only(await claim(store));
    await create(store, "b", slots("k", 1));
    await create(store, "c", slots("k", 1), { priority: Priority.HIGH });
    await create(store, "d", slots("k", 1), { priority: Priority.HIGH });
    const order: string[] = [];
    for (let last = a; order.length < 3;) {
      await end(store, last);
      last = only(await claim(store));
      order.push(...names([last]));
    }
    expect(order).toEqual(["c", "d", "b"]);
  });

  test("L17: an admitted run keeps its place while it waits, after its worker dies, and until it is deleted", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    await create(store, "a", slots("k", 1));
    await create(store, "b", slots("k", 1));
    const a = only(await claim(store));
    await store.leases.release(a, { kind: "suspended", wakeAt: 50 });
    expect(await claimed(store, { now: 10 })).toEqual([]);
    expect(await claimed(store, { now: 50 })).toEqual(["a"]);
    await store.leases.dismiss("w1");
    await store.leases.enlist("w2");
    expect(names(await claim(store, { now: 51 }, "w2"))).toEqual(["a"]);
    await store.journal.delete(a.runId);
    expect(names(await claim(store, { now: 52 }, "w2"))).toEqual(["b"]);
  });

  test("L17: a run that ended without success frees its place, and takes it again when it is reopened", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    await create(store, "a", slots("k", 1));
    const a = only(await claim(store));
    await store.journal.append(a, { number: 1, at: 2, events: [runEnd(a.runId, 0)] });
    await store.leases.release(a, { kind: "suspended", wakeAt: null });
    await store.mailbox.put(mailTo(a.runId));
    const again = only(await claim(store));
    await store.journal.append(again, {
      number: 2,
      at: 3,
      tasks: [{ type: "reopen", taskId: rootTask }],
    });
    await create(store, "b", slots("k", 1));
    expect(await claimed(store)).toEqual([]);
  });

  test("L17: at most the limit of runs of a key is admitted within any span of its rate", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    for (const name of ["a", "b", "c", "d", "e"]) await create(store, name, starts("k", 2));
    expect(await claimed(store, { now: 1_000, limit: 1 })).toEqual(["a"]);
    await create(store, "other", starts("j", 1));
    expect((await claimed(store, { now: 1_040 })).toSorted()).toEqual(["b", "other"]);
    expect(await store.leases.nextWakeAt(1_040)).toBe(1_100);
    expect(await claimed(store, { now: 1_099 })).toEqual([]);
    expect(await claimed(store, { now: 1_100 })).toEqual(["c", "d"]);
    expect(await claimed(store, { now: 1_199 })).toEqual([]);
    expect(await claimed(store, { now: 1_200 })).toEqual(["e"]);
  });

  test("L17: a run that waits for its rate may be cancelled, and the queue still wakes on time", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    await create(store, "a", starts("k", 1));
    await claim(store, { now: 1_000 });
    const b = await create(store, "b", starts("k", 1));
    await create(store, "c", starts("k", 1));
    expect(await claimed(store, { now: 1_010 })).toEqual([]);
    await store.mailbox.put(mailTo(b));
    const queued = only(await claim(store, { now: 1_020 }));
    expect(queued.isQueued).toBe(true);
    await store.journal.append(queued, { number: 1, at: 2, mailThrough: 0, events: [runEnd(b, 0)] });
    await store.leases.release(queued, { kind: "ended" });
    expect(await claimed(store, { now: 1_030 })).toEqual([]);
    expect(await store.leases.nextWakeAt(1_030)).toBe(1_100);
    expect(await claimed(store, { now: 1_100 })).toEqual(["c"]);
  });

  test("L17: a run with a limit and a rate waits for its place first, and keeps the place while it waits for the rate", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const both = { ...slots("k", 1), ...starts("all", 1) };
    await create(store, "a", both);
    const claimUntil = async (now: number): Promise<string[]> => [
      ...(await claimed(store, { now })),
      ...(await claimed(store, { now })),
    ];
    expect(await claimUntil(1_000)).toEqual(["a"]);
    await create(store, "b", { ...slots("j", 1), ...starts("all", 1) });
    await create(store, "c", { ...slots("j", 1), ...starts("all", 1) });
    expect(await claimUntil(1_050)).toEqual([]);
    expect(await claimUntil(1_100)).toEqual(["b"]);
    expect(await claimUntil(1_300)).toEqual([]);
  });

  test("L17: a run with a later start enters the queue at that time", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const late = await create(store, "late", slots("k", 1), { startAt: 500 });
    expect(await standing(store, late)).toEqual({ status: "pending", waitsFor: ["time"] });
    await create(store, "b", slots("k", 1));
    await create(store, "c", slots("k", 1));
    const b = only(await claim(store, { now: 10 }));
    await end(store, b);
    expect(await claimed(store, { now: 20 })).toEqual(["c"]);
    expect(await claimed(store, { now: 500 })).toEqual([]);
    expect(await standing(store, late)).toEqual({ status: "pending", waitsFor: ["queue"] });
  });

  test("L17: of the runs of a key, one with a later start comes after those that were in the queue before its time", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    await create(store, "a", slots("k", 1));
    const a = only(await claim(store, { now: 1 }));
    for (const [name, startAt, createdAt] of [
      ["last", 500, 10],
      ["second", 300, 20],
      ["third", 300, 30],
      ["past", 5, 40],
      ["b", null, 100],
      ["c", null, 400],
      ["high", 450, 410],
    ] as const) {
      const priority = name === "high" ? Priority.HIGH : Priority.NORMAL;
      await create(store, name, slots("k", 1), { startAt, createdAt, priority });
    }
    const order: string[] = [];
    for (let last = a; order.length < 7;) {
      await end(store, last);
      last = only(await claim(store, { now: 600 }));
      order.push(...names([last]));
    }
    expect(order).toEqual(["high", "past", "b", "second", "third", "c", "last"]);
  });

  test("L17: claim() with the option only checks the limits of the given run", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const [a, b] = [await create(store, "a", slots("k", 1)), await create(store, "b", slots("k", 1))];
    expect(await claimed(store, { only: [b] })).toEqual([]);
    const takeOver = { suspended: true, ended: true };
    const held = await claim(store, { only: [a], takeOver });
    expect(names(held)).toEqual(["a"]);
    expect(await claimed(store, { only: [b], takeOver })).toEqual([]);
    await end(store, only(held));
    expect(await claimed(store, { only: [b], takeOver })).toEqual(["b"]);
  });

  test("L17: createAndClaim() does not claim a run with limits, and releasing a run frees its place in the same call", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const record = { ...runRecord("a"), flow: slots("k", 1) };
    const options: ClaimOptions = { workerId: "w1", limit: 1, now: 0 };
    await (store.journal.createAndClaim?.(record, first, undefined, options) ??
      store.journal.create(record, first));
    await create(store, "b", slots("k", 1));
    const a = only(await claim(store));
    expect(names([a])).toEqual(["a"]);
    const last: Commit = { number: 1, at: 2, events: [runEnd(a.runId, 0)] };
    if (store.journal.appendAndRelease === undefined) await end(store, a);
    else await store.journal.appendAndRelease(a, last, undefined, { kind: "ended" });
    expect(await claimed(store)).toEqual(["b"]);
  });

  /** A call of a key of an object. */
  const callOf = (key: string, isShared?: true): RunFlow => ({
    object: { name: "counter", key, ...(isShared && { isShared }) },
  });
  const stateOf = async (store: Store, key: string, tenantId: string | null = null): Promise<unknown> =>
    (await store.records.get({ ...stateRecord({ name: "counter", key }), tenantId }))?.value;
  const stateEvent = (runId: RunId, seq: number, key: string, state?: JsonValue): Event => ({
    ...runEnd(runId, seq),
    type: "state_changed",
    data: { object: "counter", key, ...(state !== undefined && { state }) },
  });

  test("L19: claim() admits the calls of a key one at a time in the order of their creation, and shared calls at once", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    for (const name of ["a", "b", "c"]) await create(store, name, callOf("k"));
    await create(store, "other", callOf("j"));
    await create(store, "tenant", callOf("k"), { tenantId: "acme" });
    await create(store, "shared", callOf("k", true));
    const admitted = await claim(store);
    expect(names(admitted).toSorted()).toEqual(["a", "other", "shared", "tenant"]);
    const order: string[] = [];
    for (let last = admitted.find(({ runId }) => runId === "run_a") as Lease; order.length < 2;) {
      await end(store, last);
      last = only(await claim(store));
      order.push(...names([last]));
    }
    expect(order).toEqual(["b", "c"]);
  });

  test("L19: a commit stores the last object state that its events set, for the tenant of its run; a refused commit stores none", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    await create(store, "a", callOf("k/ä 1"), { tenantId: "acme" });
    const a = only(await claim(store));
    const events = [
      stateEvent(a.runId, 0, "k/ä 1", { count: 1 }),
      stateEvent(a.runId, 1, "k/ä 1", { count: 2 }),
    ];
    await store.journal.append(a, { number: 1, at: 2, events });
    expect(await stateOf(store, "k/ä 1", "acme")).toEqual({ count: 2 });
    expect(await stateOf(store, "k/ä 1")).toBeUndefined();
    const later = stateEvent(a.runId, 2, "k/ä 1", { count: 3 });
    const lost: Lease = { ...a, epoch: a.epoch - 1 };
    await expect(
      (async () => store.journal.append(lost, { number: 2, at: 3, events: [later] }))(),
    ).rejects.toMatchObject({ code: "lease_lost" });
    expect(await stateOf(store, "k/ä 1", "acme")).toEqual({ count: 2 });
    // A repeated commit changes nothing: its number is taken.
    await store.journal.append(a, { number: 1, at: 4, events: [stateEvent(a.runId, 0, "k/ä 1", 9)] });
    expect(await stateOf(store, "k/ä 1", "acme")).toEqual({ count: 2 });
  });

  test("L19: the commit that ends a call changes the object's state, which outlives the run; a cleared state is removed", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    await create(store, "a", callOf("k"));
    const a = only(await claim(store));
    const last: Commit = {
      number: 1,
      at: 2,
      events: [stateEvent(a.runId, 0, "k", "x".repeat(10_000)), runEnd(a.runId, 1)],
    };
    await (store.journal.appendAndRelease?.(a, last, undefined, { kind: "ended" }) ??
      store.journal.append(a, last));
    await store.journal.delete(a.runId);
    expect(await stateOf(store, "k")).toBe("x".repeat(10_000));
    await create(store, "b", callOf("k"));
    const b = only(await claim(store));
    await store.journal.append(b, { number: 1, at: 3, events: [stateEvent(b.runId, 0, "k")] });
    expect(await stateOf(store, "k")).toBeUndefined();
  });

  /** A collection of a start at a time. */
  const collecting = (
    keeps: "last" | "all",
    input: JsonValue,
    at: number,
    more: Partial<RunCollection> = {},
  ): RunFlow => ({
    collect: {
      name: "order",
      key: "k",
      userId: null,
      keeps,
      delayMs: keeps === "last" ? 100 : null,
      size: 3,
      dueAt: at + 100,
      latestAt: null,
      inputs: [input],
      ...more,
    },
  });
  const begin = async (
    store: Store,
    name: string,
    createdAt: number,
    flow: RunFlow,
    more: More = {},
  ): Promise<unknown> => {
    const record = { ...runRecord(name), sessionId: formatSessionId(name), createdAt, flow, ...more };
    return store.journal.create(record, first);
  };
  const inputsOf = async (store: Store, name: string): Promise<unknown> =>
    (await store.journal.find(`run_${name}` as RunId))?.flow?.collect?.inputs;

  test("L20: another start of a debounced workflow replaces the input of the waiting run and delays it, up to its latest time", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const latest = { latestAt: 1_250 };
    expect(await begin(store, "a", 1_000, collecting("last", 1, 1_000, latest))).toEqual({ kind: "created" });
    expect(await begin(store, "b", 1_090, collecting("last", 2, 1_090, latest))).toEqual({
      kind: "steered",
      runId: "run_a",
    });
    expect(await claimed(store, { now: 1_100 })).toEqual([]);
    expect(await store.leases.nextWakeAt(1_100)).toBe(1_190);
    await begin(store, "c", 1_180, collecting("last", 3, 1_180, latest));
    expect(await claimed(store, { now: 1_249 })).toEqual([]);
    expect(await inputsOf(store, "a")).toEqual([3]);
    expect(await claimed(store, { now: 1_250 })).toEqual(["a"]);
    expect(await store.mailbox.receiverOf("submit run_b")).toBe("run_a");
    expect(await begin(store, "b", 1_260, collecting("last", 2, 1_260))).toEqual({
      kind: "steered",
      runId: "run_a",
    });
    expect(await begin(store, "d", 1_260, collecting("last", 4, 1_260))).toEqual({ kind: "created" });
  });

  test("L20: a batch starts when it is full or its time has come, and each tenant, user and key has its own batch", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    for (const name of ["a", "b", "c", "d"]) await begin(store, name, 1_000, collecting("all", name, 1_000));
    await begin(store, "t", 1_000, collecting("all", "t", 1_000), { tenantId: "acme" });
    await begin(store, "u", 1_000, collecting("all", "u", 1_000, { userId: "ann" }));
    await begin(store, "k", 1_000, collecting("all", "k", 1_000, { key: "j" }));
    expect(await claimed(store, { now: 1_001 })).toEqual(["a"]);
    expect([await inputsOf(store, "a"), await inputsOf(store, "d")]).toEqual([["a", "b", "c"], ["d"]]);
    expect((await claimed(store, { now: 1_100 })).toSorted()).toEqual(["d", "k", "t", "u"]);
  });

  test("L20: a batched run with mail takes no more starts; once released, it is queued until its time with its limits", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const flow = { ...collecting("last", 1, 1_000), ...slots("k", 1) };
    await begin(store, "a", 1_000, flow);
    await store.mailbox.put(mailTo("run_a" as RunId));
    expect(await begin(store, "b", 1_010, { ...flow, ...collecting("last", 2, 1_010) })).toEqual({
      kind: "created",
    });
    const queued = only(await claim(store, { now: 1_020 }));
    expect(queued.isQueued).toBe(true);
    await store.journal.append(queued, { number: 1, at: 2, mailThrough: 0 });
    await store.leases.release(queued, { kind: "suspended", wakeAt: null });
    expect(await claimed(store, { now: 1_030 })).toEqual([]);
    const order = [
      ...(await claimed(store, { now: 1_200 })),
      ...(await claimed(store, { now: 1_200 })),
      ...(await claimed(store, { now: 1_200 })),
    ];
    expect(order).toEqual(["a"]);
  });

  test("L20: the inputs that a batched run has collected are erased with the content of its root task", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    await begin(store, "a", 1_000, collecting("all", "secret", 1_000));
    await begin(store, "b", 1_000, collecting("all", "secret", 1_000));
    const a = only(await claim(store, { now: 2_000 }));
    const erases = [{ taskId: rootTask, agentId: runRecord("a").agentId }];
    await store.journal.append(a, { number: 1, at: 2, events: [runEnd(a.runId, 0)], erases });
    expect(await inputsOf(store, "a")).toEqual([]);
  });

  test("L20: starts of a batched workflow from two processes are in exactly one batch each", async () => {
    const store = await open();
    const other = await reopen();
    await store.leases.enlist("w1");
    const names20 = Array.from({ length: 20 }, (_each, index) => `s${index}`);
    await Promise.all(
      names20.map((name, index) =>
        begin(index % 2 === 0 ? store : other, name, 1_000, collecting("all", name, 1_000)),
      ),
    );
    const leases = [...(await claim(store, { now: 2_000 })), ...(await claim(store, { now: 2_000 }))];
    const batches = await Promise.all(
      leases.map(async ({ runId }) => (await store.journal.find(runId))?.flow),
    );
    const all = batches.flatMap((flow) => flow?.collect?.inputs ?? []);
    expect(all.map(String).toSorted()).toEqual(names20.toSorted());
    expect(batches.every((flow) => (flow?.collect?.inputs.length ?? 9) <= 3)).toBe(true);
  });

  test("L17: workers of two processes together claim at most as many runs of a key as its limit", async () => {
    const store = await open();
    const other = await reopen();
    await store.leases.enlist("w1");
    await other.leases.enlist("w2");
    for (let index = 0; index < 12; index++) await create(store, `r${index}`, slots("k", 3));
    const rounds = await Promise.all([
      claim(store, { limit: 2 }),
      claim(other, { limit: 2 }, "w2"),
      claim(store, { limit: 2 }),
      claim(other, { limit: 2 }, "w2"),
    ]);
    expect(names(rounds.flat()).length).toBe(3);
    const [ended] = rounds.flat();
    await end(ended?.workerId === "w2" ? other : store, ended as Lease);
    const more = await Promise.all([claim(store), claim(other, {}, "w2")]);
    expect(names(more.flat()).length).toBe(1);
  });

  test("L18: a run that is released as queued gets limits, and is then admitted in its turn", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const flow = slots("k", 1);
    const plain = async (name: string): Promise<RunId> => {
      const record = { ...runRecord(name), sessionId: formatSessionId(name) };
      await store.journal.create(record, first);
      return record.runId;
    };
    const [a, b] = [await plain("a"), await plain("b")];
    for (const lease of await claim(store)) await store.leases.release(lease, { kind: "queued", flow });
    expect((await store.journal.find(b))?.flow).toEqual(flow);
    const held = only(await claim(store));
    expect([held.runId, held.isQueued]).toEqual([a, undefined]);
    expect(await standing(store, b)).toEqual({ status: "pending", waitsFor: ["queue"] });
    await end(store, held);
    expect(await claimed(store)).toEqual(["b"]);
  });
}
