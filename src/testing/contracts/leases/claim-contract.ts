import {
  agentNameOf,
  formatAgentId,
  type AgentId,
  type ClaimOptions,
  type Event,
  type Fault,
  type Lease,
  type RunId,
  type RunRecord,
  type Store,
  type StoreChange,
} from "../../../kernel/index.ts";
import type { ContractHarness } from "../contract-harness.ts";
import { agentId, createRun, ownRun, rootTask, runRecord } from "../store-fixtures.ts";

type Choice = Partial<
  Pick<ClaimOptions, "agents" | "only" | "takeOver" | "except" | "limit" | "now" | "host">
>;

const first = { number: 0, at: 1 } as const;

/**
 * Tests of the parameters of `Leases.claim`, and of the notifications that a store sends to its listeners and
 * workers.
 */
export function claimContract({ test, expect, open, loseWorker }: ContractHarness): void {
  const claim = async (store: Store, choice: Choice = {}, workerId = "w1"): Promise<readonly Lease[]> =>
    store.leases.claim({ workerId, limit: 10, now: 0, ...choice });

  const claimed = async (store: Store, choice: Choice = {}, workerId = "w1"): Promise<RunId[]> =>
    (await claim(store, choice, workerId)).map(({ runId }) => runId);

  /** Creates a run and returns its id. */
  const create = async (store: Store, name: string, more: Partial<RunRecord> = {}): Promise<RunId> => {
    const record = { ...runRecord(name), ...more };
    await store.journal.create(record, first);
    return record.runId;
  };

  test("claim() returns only runs of the agents that it names", async () => {
    const store = await open();
    const runId = await createRun(store);
    await store.leases.enlist("w1");
    const claimFor = async (name: string): Promise<readonly Lease[]> =>
      store.leases.claim({
        workerId: "w1",
        limit: 9,
        now: 0,
        agents: [{ agentId: formatAgentId({ name }) }],
      });
    expect(await claimFor("stranger")).toEqual([]);
    expect((await claimFor("tester")).map((lease) => lease.runId)).toEqual([runId]);
  });

  test("J9: claim() returns only runs of the named agent versions and none of the excluded runs", async () => {
    const store = await open();
    const of = (name: string, agentVersion: string | null): Promise<RunId> =>
      create(store, name, { agentVersion });
    const [none, one, other] = [await of("a", null), await of("b", "1"), await of("c", "1")];
    await of("d", "2");
    await store.leases.enlist("w1");
    const claimFor = async (version: string | null, ...except: RunId[]): Promise<string[]> => {
      const options = { workerId: "w1", limit: 9, now: 0, agents: [{ agentId, version }], except };
      return (await store.leases.claim(options)).map((lease) => lease.runId);
    };
    expect(await claimFor("3")).toEqual([]);
    expect(await claimFor("1", one)).toEqual([other]);
    expect(await claimFor("1", one)).toEqual([]);
    expect(await claimFor(null)).toEqual([none]);
    expect((await claimed(store)).length).toBe(2);
  });

  /** Binds a run to a machine, and releases it as ready. */
  const bind = async (store: Store, name: string, host: string): Promise<RunId> => {
    const runId = await create(store, name);
    const [lease] = await claim(store, { only: [runId] });
    const at = { runId, taskId: rootTask, agentId, parentId: null, at: 2 };
    const event: Event = { ...at, seq: 0, type: "run_bind", data: { host, program: "clerk" } };
    await store.journal.append(lease as Lease, { number: 1, at: 2, events: [event] });
    await store.leases.release(lease as Lease, { kind: "ready" });
    return runId;
  };

  test("L21: claim() with a host leaves out the runs that are bound to another machine", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const here = await bind(store, "a", "here");
    const there = await bind(store, "b", "there");
    const free = await create(store, "c");
    expect(await claimed(store, { host: "nowhere", only: [here, there] })).toEqual([]);
    expect(await claimed(store, { host: "here", limit: 1, except: [free] })).toEqual([here]);
    expect(await claimed(store, { host: "here" })).toEqual([free]);
    expect(await claimed(store, { host: "here" })).toEqual([]);
    expect(await claimed(store, { host: "there", agents: [{ agentId }] })).toEqual([there]);
  });

  test("L21: a run that is bound to a machine waits for host until a worker there claims it", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const runId = await bind(store, "a", "there");
    const shown = async (): Promise<unknown> => {
      const { status, waitsFor, host } = (await store.journal.summary(runId)) ?? {};
      return { status, waitsFor, host };
    };
    expect(await shown()).toEqual({ status: "pending", waitsFor: ["host"], host: "there" });
    const [lease] = await claim(store, { host: "there" });
    expect(await shown()).toEqual({ status: "running", waitsFor: [], host: "there" });
    const at = { runId, taskId: rootTask, agentId, parentId: null, at: 3 };
    const again: Event = { ...at, seq: 1, type: "run_bind", data: { host: "elsewhere", program: "clerk" } };
    await store.journal.append(lease as Lease, { number: 2, at: 3, events: [again] });
    expect(await shown()).toEqual({ status: "running", waitsFor: [], host: "there" });
  });

  test("L21: claim() without a host returns runs that are bound to any machine", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const runId = await bind(store, "a", "there");
    expect(await claimed(store, { only: [runId] })).toEqual([runId]);
  });

  const keyed = (name: string, key: string): AgentId => formatAgentId({ name, key });

  test("L11: claim() by name returns the runs of this name with any key and of any version", async () => {
    const store = await open();
    const runs = [
      await create(store, "a"),
      await create(store, "b", { agentId: keyed("tester", "eu"), agentVersion: "1" }),
      await create(store, "c", { agentId: keyed("tester", "us"), agentVersion: "2" }),
      await create(store, "d", { agentVersion: "3" }),
    ];
    await store.leases.enlist("w1");
    const found = await claimed(store, { agents: [{ agentName: "tester" }] });
    expect(found.toSorted()).toEqual(runs);
    expect(await claimed(store)).toEqual([]);
  });

  test("L11: claim() by name returns no run of an agent whose name only begins with the given name", async () => {
    const store = await open();
    for (const [index, name] of ["teste", "tester.eu", "tester-eu", "tester0", "testers"].entries())
      await create(store, `a${index}`, { agentId: formatAgentId({ name }) });
    await create(store, "b", { agentId: keyed("testers", "tester") });
    await store.leases.enlist("w1");
    expect(await claimed(store, { agents: [{ agentName: "tester" }] })).toEqual([]);
    expect((await claimed(store)).length).toBe(6);
  });

  test("L11: a name and an exact id in one claim() return each run once, and a version restricts only its own id", async () => {
    const store = await open();
    const other = formatAgentId({ name: "other" });
    const runs = [
      await create(store, "a", { agentVersion: "1" }),
      await create(store, "b", { agentVersion: "2" }),
      await create(store, "c", { agentId: other, agentVersion: "1" }),
    ];
    await create(store, "d", { agentId: other, agentVersion: "2" });
    await store.leases.enlist("w1");
    const agents = [
      { agentId, version: "1" },
      { agentName: agentNameOf(agentId) },
      { agentId: other, version: "1" },
    ];
    expect((await claimed(store, { agents })).toSorted()).toEqual(runs);
  });

  test("L5, L11: runs that are claimed by name take turns by agent", async () => {
    const store = await open();
    const [eu, us] = [keyed("tester", "eu"), keyed("tester", "us")];
    for (const name of ["e1", "e2", "e3"]) await create(store, name, { agentId: eu });
    for (const name of ["u1", "u2"]) await create(store, name, { agentId: us });
    await store.leases.enlist("w1");
    const order: string[] = [];
    for (let round = 0; round < 5; round++) {
      const [runId = ""] = await claimed(store, { agents: [{ agentName: "tester" }], limit: 1 });
      order.push(runId.slice("run_".length));
    }
    expect(order).toEqual(["e1", "u1", "e2", "u2", "e3"]);
  });

  test("L11: claim() by name takes over the runs of a dead worker and the runs that are due", async () => {
    const store = await open();
    const dead = await ownRun(store, "a");
    const due = await ownRun(store, "b");
    await store.leases.release(due, { kind: "suspended", wakeAt: 100 });
    await store.leases.dismiss("w1");
    await store.leases.enlist("w2");
    const agents = [{ agentName: "tester" }];
    expect(await claimed(store, { agents, now: 99 }, "w2")).toEqual([dead.runId]);
    expect(await claimed(store, { agents, now: 100 }, "w2")).toEqual([due.runId]);
  });

  test("L11: createAndClaim() claims a new run of an agent that the worker hosts by name", async () => {
    const store = await open();
    const createAndClaim = store.journal.createAndClaim?.bind(store.journal);
    if (createAndClaim === undefined) return;
    await store.leases.enlist("w1");
    const [one, two] = [{ ...runRecord("a"), agentId: keyed("tester", "eu") }, runRecord("b")];
    const hosting = (agentName: string): ClaimOptions => ({
      workerId: "w1",
      limit: 1,
      now: 0,
      agents: [{ agentName }],
    });
    const created = await createAndClaim(one, first, undefined, hosting("tester"));
    expect(created.kind === "created" && created.lease?.runId).toBe(one.runId);
    expect(await createAndClaim(two, first, undefined, hosting("other"))).toEqual({ kind: "created" });
  });

  test("L10: claim() with the option only returns the given runs in the given order and leaves other runs ready", async () => {
    const store = await open();
    const [a, b, c] = [await createRun(store, "a"), await createRun(store, "b"), await createRun(store, "c")];
    await store.leases.enlist("w1");
    expect(await claimed(store, { only: [c, a, c] })).toEqual([c, a]);
    expect(await claimed(store, { only: [c, a] })).toEqual([]);
    expect(await claimed(store)).toEqual([b]);
  });

  test("L10: claim() with an empty list in the option only, or with unknown runs, returns nothing", async () => {
    const store = await open();
    const runId = await createRun(store);
    await store.leases.enlist("w1");
    expect(await claimed(store, { only: [] })).toEqual([]);
    expect(await claimed(store, { only: [runRecord("unknown").runId] })).toEqual([]);
    expect(await claimed(store)).toEqual([runId]);
  });

  test("L2, L10: claim() with the option only returns no run that is owned, has ended or sleeps", async () => {
    const store = await open();
    const [owned, ended, sleeps] = [
      await ownRun(store, "a"),
      await ownRun(store, "b"),
      await ownRun(store, "c"),
    ];
    await store.leases.release(ended, { kind: "ended" });
    await store.leases.release(sleeps, { kind: "suspended", wakeAt: 100 });
    await store.leases.enlist("w2");
    const only = [owned.runId, ended.runId, sleeps.runId];
    expect(await claimed(store, { only, now: 99 }, "w2")).toEqual([]);
    await store.leases.check(owned);
    expect(await claimed(store, { only, now: 100 }, "w2")).toEqual([sleeps.runId]);
  });

  test("L3, L10: claim() with the option only returns an ended run that has mail", async () => {
    const store = await open();
    const { runId, ...lease } = await ownRun(store);
    await store.leases.release({ runId, ...lease }, { kind: "ended" });
    await store.mailbox.put({ id: "m", runId, from: "x", at: 1, body: { type: "pause" } });
    expect(await claimed(store, { only: [runId] })).toEqual([runId]);
  });

  test("L7, L10: claim() with the option only takes one run of a dead worker and counts its recovery; other runs stay ready", async () => {
    const store = await open();
    const [one, other] = [await ownRun(store, "a"), await ownRun(store, "b")];
    await store.leases.dismiss("w1");
    await store.leases.enlist("w2");
    const [lease] = await claim(store, { only: [one.runId] }, "w2");
    expect([lease?.runId, lease?.recoveries]).toEqual([one.runId, 1]);
    expect((lease?.epoch ?? 0) > one.epoch).toBe(true);
    await expect(store.leases.check(one)).rejects.toMatchObject({ code: "lease_lost" });
    const [rest] = await claim(store, {}, "w2");
    expect([rest?.runId, rest?.recoveries]).toEqual([other.runId, 1]);
  });

  test("L10: the options agents, except and limit restrict a claim() with the option only", async () => {
    const store = await open();
    const [a, b, c] = [await createRun(store, "a"), await createRun(store, "b"), await createRun(store, "c")];
    const d = await create(store, "d", { agentId: formatAgentId({ name: "other" }) });
    await store.leases.enlist("w1");
    const only = [d, a, b, c];
    expect(await claimed(store, { only, agents: [{ agentId }], except: [a], limit: 1 })).toEqual([b]);
    expect(await claimed(store, { only, agents: [{ agentName: "other" }] })).toEqual([d]);
    expect(await claimed(store, { only, agents: [{ agentId, version: "1" }] })).toEqual([]);
    expect(await claimed(store, { only })).toEqual([a, c]);
  });

  test("L1, L10: of two workers that claim the same run with the option only, one gets it", async () => {
    const store = await open();
    const runId = await createRun(store);
    await store.leases.enlist("w1");
    await store.leases.enlist("w2");
    const claims = await Promise.all(
      ["w1", "w2"].map((workerId) => claimed(store, { only: [runId] }, workerId)),
    );
    expect(claims.flat()).toEqual([runId]);
  });

  test("L5, L10: a claim() with the option only does not change which user the next claim() serves", async () => {
    const store = await open();
    const of = (name: string, userId: string): Promise<RunId> => create(store, name, { userId });
    const [a1] = [await of("a1", "ann"), await of("a2", "ann")];
    const [b1, b2] = [await of("b1", "bob"), await of("b2", "bob")];
    await store.leases.enlist("w1");
    expect(await claimed(store, { limit: 1 })).toEqual([a1]);
    expect(await claimed(store, { only: [b1] })).toEqual([b1]);
    expect(await claimed(store, { limit: 1 })).toEqual([b2]);
  });

  /** Collects the changes that the store announces while `work` runs, until there is one of each kind. */
  const changesOf = async (
    store: Store,
    kinds: readonly StoreChange["kind"][],
    work: () => Promise<unknown>,
  ): Promise<readonly StoreChange[]> => {
    const changes: StoreChange[] = [];
    const complete = Promise.withResolvers<void>();
    const stop = store.onChange((change) => {
      changes.push(change);
      if (kinds.every((kind) => changes.some((each) => each.kind === kind))) complete.resolve();
    });
    await work();
    await complete.promise;
    stop();
    return changes.filter(({ kind }) => kinds.includes(kind));
  };

  test("onChange() announces a new run with the time at which it starts", async () => {
    const store = await open();
    const [runId, later] = [runRecord("a").runId, runRecord("b").runId];
    const changes = await changesOf(store, ["new"], () => create(store, "a"));
    expect(changes).toEqual([{ kind: "new", runId, startAt: null }]);
    const more = await changesOf(store, ["new"], () => create(store, "b", { startAt: 500 }));
    expect(more).toEqual([{ kind: "new", runId: later, startAt: 500 }]);
  });

  test("onChange() announces mail, a released run that is ready, and a run that another worker has seized", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const { runId } = lease;
    const mail = { id: "m", runId, from: "x", at: 1, body: { type: "pause" } } as const;
    const sent = await changesOf(store, ["mail"], () => store.mailbox.put(mail));
    expect(sent).toEqual([{ kind: "mail", runId }]);
    const released = await changesOf(store, ["released"], async () =>
      store.leases.release(lease, { kind: "suspended", wakeAt: null }),
    );
    expect(released).toEqual([{ kind: "released", runId, isReady: true }]);
    const seized = await changesOf(store, ["seized"], () => store.leases.seize(runId, "w2"));
    expect(seized).toEqual([{ kind: "seized", runId }]);
  });

  test("onChange() does not announce as ready a run that is released as suspended", async () => {
    const store = await open();
    const [one, other] = [await ownRun(store, "a"), await ownRun(store, "b")];
    const changes = await changesOf(store, ["released"], async () => {
      await store.leases.release(one, { kind: "suspended", wakeAt: null });
      await store.leases.release(other, { kind: "ready" });
    });
    const ready = changes.filter((change) => change.kind === "released" && change.isReady);
    expect(ready).toEqual([{ kind: "released", runId: other.runId, isReady: true }]);
  });

  test("onChange() announces a message for an agent and a worker that unregisters", async () => {
    const store = await open();
    await ownRun(store);
    const message = { id: "m", from: null, to: agentId, body: 1, sentAt: 1 };
    const changes = await changesOf(store, ["message"], () => store.inbox.deliver(message));
    expect(changes).toEqual([{ kind: "message" }]);
    const left = await changesOf(store, ["worker"], () => store.leases.dismiss("w1"));
    expect(left).toEqual([{ kind: "worker" }]);
  });

  test("L13: isConfirmed() is true from enlist() to dismiss(), and false for other workers", async () => {
    const store = await open();
    expect(store.leases.isConfirmed("w1")).toBe(false);
    await store.leases.enlist("w1");
    expect([store.leases.isConfirmed("w1"), store.leases.isConfirmed("w2")]).toEqual([true, false]);
    await store.leases.dismiss("w1");
    expect(store.leases.isConfirmed("w1")).toBe(false);
  });

  test("L14: countReady() counts ready and due runs up to the limit, and no claimed, suspended or ended run", async () => {
    const store = await open();
    const count = async (now = 0, limit = 10): Promise<number> => store.leases.countReady(now, limit);
    expect(await count()).toBe(0);
    const [one, other] = [await ownRun(store, "a"), await ownRun(store, "b")];
    expect(await count()).toBe(0);
    await store.leases.release(one, { kind: "suspended", wakeAt: 100 });
    await store.leases.release(other, { kind: "ended" });
    expect(await count(99)).toBe(0);
    for (const name of ["c", "d", "e"]) await createRun(store, name);
    expect([await count(99), await count(100), await count(100, 2)]).toEqual([3, 4, 2]);
    await claimed(store, { now: 100, limit: 2 });
    expect(await count(100)).toBe(2);
  });

  if (loseWorker === undefined) return;

  test("L12: onLost is called once when a registration is lost; the worker is registered again and keeps its runs", async () => {
    const store = await open();
    const faults: Fault[] = [];
    await store.leases.enlist("w1", { onLost: (fault) => faults.push(fault) });
    const lease = await ownRun(store);
    const next = await createRun(store, "b");
    await loseWorker("w1");
    expect(await claimed(store)).toEqual([next]);
    expect(await claimed(store)).toEqual([]);
    expect(faults.map(({ code }) => code)).toEqual(["store_unavailable"]);
    await store.leases.check(lease);
    await store.leases.enlist("w2");
    expect(await claimed(store, {}, "w2")).toEqual([]);
  });

  test("L12: onLost is called before a claim() with the option only returns, and not after the worker has unregistered", async () => {
    const store = await open();
    const codes: string[] = [];
    await store.leases.enlist("w1", { onLost: ({ code }) => codes.push(code) });
    const runId = await createRun(store);
    await loseWorker("w1");
    expect(await claimed(store, { only: [runId] })).toEqual([runId]);
    expect(codes).toEqual(["store_unavailable"]);
    await store.leases.dismiss("w1");
    await store.leases.enlist("w1");
    await loseWorker("w1");
    await expect(claim(store)).rejects.toMatchObject({ code: "store_unavailable" });
    expect(codes).toEqual(["store_unavailable"]);
  });
}
