import {
  formatAgentId,
  formatSessionId,
  type Lease,
  type RunRecord,
  type SessionEntry,
  type Store,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import {
  appendEntry as append,
  ownRun,
  runEnd,
  runRecord,
  sessionEntry as entry,
  sessionId,
} from "./store-fixtures.ts";

const otherAgent = formatAgentId({ name: "other" });

const back: SessionEntry = {
  type: "leaf",
  id: "back",
  parentId: "a",
  targetId: "a",
  at: 1,
  runId: null,
  taskId: null,
};

/** Tests of changes that are possible only in an idle session. */
export function idleSessionContract({ test, expect, open }: ContractHarness): void {
  const move = async (store: Store): Promise<string | undefined> =>
    (await store.sessions.apply([append(back)], { whenIdle: sessionId }))?.runId;
  const leafId = async (store: Store): Promise<unknown> => (await store.sessions.find(sessionId))?.leafId;
  const prepare = async (): Promise<Store> => {
    const store = await open();
    await store.sessions.apply([append(entry("a", null)), append(entry("b", "a"))]);
    return store;
  };

  test("S5: apply() with whenIdle changes an idle session and returns nothing", async () => {
    const store = await prepare();
    expect(await move(store)).toBeUndefined();
    expect(await leafId(store)).toBe("a");
  });

  test("apply() with whenAt changes nothing if the session was deleted or continues after another entry", async () => {
    const store = await prepare();
    const name: SessionEntry = {
      type: "session_info",
      name: "x",
      id: "name",
      parentId: null,
      at: 1,
      runId: null,
      taskId: null,
    };
    await expect(
      store.sessions.apply([append(back)], { whenAt: { sessionId, leafId: "a" } }),
    ).rejects.toMatchObject({ code: "not_found" });
    expect(await leafId(store)).toBe("b");
    await store.sessions.apply([append(back)], { whenAt: { sessionId, leafId: "b" } });
    expect(await leafId(store)).toBe("a");
    await store.sessions.delete(sessionId);
    await expect(store.sessions.apply([append(name)], { whenAt: { sessionId } })).rejects.toMatchObject({
      code: "not_found",
    });
    expect(await store.sessions.find(sessionId)).toBeUndefined();
  });

  test("S5: apply() with whenIdle changes nothing and returns the unfinished run, whichever agent it belongs to", async () => {
    const store = await prepare();
    const lease = await ownRun(store);
    const second = { ...runRecord("b"), agentId: otherAgent };
    await store.journal.create(second, { number: 0, at: 1 });
    const unfinished: readonly unknown[] = [lease.runId, second.runId];
    expect(unfinished.includes(await move(store))).toBe(true);
    await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 1)] });
    expect(await move(store)).toBe(second.runId);
    expect(await leafId(store)).toBe("b");
    await store.journal.delete(second.runId);
    expect(await move(store)).toBeUndefined();
    expect(await leafId(store)).toBe("a");
  });

  test("S5: apply() with whenIdle is refused while an ended run has unread mail that may resume it", async () => {
    const store = await prepare();
    const lease = await ownRun(store);
    await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 1)] });
    await store.leases.release(lease, { kind: "ended" });
    await store.mailbox.put({ id: "m", runId: lease.runId, from: "user", at: 3, body: { type: "resume" } });
    expect(await move(store)).toBe(lease.runId);
    expect(await leafId(store)).toBe("b");
  });

  const heldRun = { status: "pending", waitsFor: ["compaction"] };
  const claimable = async (store: Store): Promise<readonly string[]> => {
    const leases = await store.leases.claim({ workerId: "w1", limit: 9, now: 9 });
    return leases.map(({ runId }) => runId);
  };
  const ownCompaction = async (store: Store, run: RunRecord): Promise<Lease> => {
    await store.leases.enlist("w1");
    expect(await store.journal.create(run, { number: 0, at: 1 })).toEqual({ kind: "created" });
    const lease = await store.leases.seize(run.runId, "w1");
    if (lease === undefined) throw new Error("the compaction could not be seized");
    return lease;
  };

  test("S5: runs that are created while the session is compacted are held until the compaction ends", async () => {
    for (const agentId of [otherAgent, runRecord("a").agentId]) {
      const store = await prepare();
      const compaction = { ...runRecord("c"), kind: "compaction", agentId } as const;
      const lease = await ownCompaction(store, compaction);
      const mail = { id: "submit a", from: "user", at: 1, body: { type: "steer", input: "hi" } } as const;
      const flight = { steering: mail, always: true };
      const { runId } = runRecord("a");
      const created = { kind: "created" };
      expect(await store.journal.create(runRecord("a"), { number: 0, at: 2 }, flight)).toEqual(created);
      expect(await store.journal.create(runRecord("b"), { number: 0, at: 2 })).toEqual(created);
      const later = { ...runRecord("d"), agentId: otherAgent, startAt: 5_000 };
      expect(await store.journal.create(later, { number: 0, at: 2 })).toEqual(created);
      // Input of the same caller goes to the held run, and never to the compaction.
      const more = { ...flight, always: false, steering: { ...mail, id: "submit e" } };
      const steered = await store.journal.create(runRecord("e"), { number: 0, at: 2 }, more);
      expect(steered).toEqual({ kind: "steered", runId: runRecord("b").runId });
      const summary = await store.journal.summary(runId);
      expect({ status: summary?.status, waitsFor: summary?.waitsFor }).toEqual(heldRun);
      const pending = await store.journal.list({ status: "pending" });
      expect(pending.runs.map((run) => run.runId)).toEqual([later.runId, runRecord("b").runId, runId]);
      expect(await claimable(store)).toEqual([]);
      expect(await store.leases.nextWakeAt(0)).toBe(null);
      expect(await store.mailbox.read(compaction.runId)).toEqual([]);
      const end = { number: 1, at: 3, events: [runEnd(lease.runId, 0)] };
      if (store.journal.appendAndRelease === undefined) await store.journal.append(lease, end);
      else await store.journal.appendAndRelease(lease, end, undefined, { kind: "ended" });
      expect((await claimable(store)).toSorted()).toEqual([runId, runRecord("b").runId]);
      expect(await store.leases.nextWakeAt(0)).toBe(5_000);
    }
  });

  test("S5: mail to an ended run does not wake it while the session is compacted, and wakes it afterwards", async () => {
    const store = await prepare();
    const lease = await ownRun(store);
    await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 1)] });
    await store.leases.release(lease, { kind: "ended" });
    const compaction = { ...runRecord("c"), kind: "compaction" } as const;
    const compacting = await ownCompaction(store, compaction);
    await store.mailbox.put({ id: "m", runId: lease.runId, from: "user", at: 3, body: { type: "resume" } });
    expect(await claimable(store)).toEqual([]);
    await store.journal.append(compacting, { number: 1, at: 4, events: [runEnd(compaction.runId, 0)] });
    expect(await claimable(store)).toEqual([lease.runId]);
  });

  test("S5: a run with unread mail whose last commit starts a compaction is not ready before the compaction ends", async () => {
    const store = await prepare();
    const lease = await ownRun(store);
    await store.mailbox.put({ id: "m", runId: lease.runId, from: "user", at: 3, body: { type: "resume" } });
    const end = { number: 1, at: 2, mailThrough: 0, events: [runEnd(lease.runId, 1)] };
    const compaction = { ...runRecord("c"), kind: "compaction" } as const;
    await store.journal.append(lease, end, [{ run: compaction, first: { number: 0, at: 2 } }]);
    await store.mailbox.put({ id: "n", runId: lease.runId, from: "user", at: 3, body: { type: "resume" } });
    await store.leases.release(lease, { kind: "ended" });
    expect(await claimable(store)).toEqual([compaction.runId]);
    await store.journal.delete(compaction.runId);
    expect(await claimable(store)).toEqual([lease.runId]);
  });

  test("S5: the deletion of a compaction frees the runs that waited for it", async () => {
    const store = await prepare();
    const compaction = { ...runRecord("c"), kind: "compaction" } as const;
    await ownCompaction(store, compaction);
    await store.journal.create(runRecord("a"), { number: 0, at: 2 });
    expect(await move(store)).toBe(compaction.runId);
    await store.journal.delete(compaction.runId);
    expect(await claimable(store)).toEqual([runRecord("a").runId]);
  });

  test("S5: a compaction is refused while any run of the session is unfinished, and starts when all have ended", async () => {
    const store = await prepare();
    const lease = await ownRun(store);
    const compaction = { ...runRecord("c"), kind: "compaction", agentId: otherAgent } as const;
    const creation = await store.journal.create(compaction, { number: 0, at: 1 });
    expect(creation.kind === "busy" && creation.run.runId).toBe(lease.runId);
    expect(await store.journal.find(compaction.runId)).toBeUndefined();
    await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 1)] });
    expect(await store.journal.create(compaction, { number: 0, at: 3 })).toEqual({ kind: "created" });
    const second = { ...compaction, runId: runRecord("d").runId };
    const again = await store.journal.create(second, { number: 0, at: 4 });
    expect(again.kind === "busy" && again.run.runId).toBe(compaction.runId);
  });

  test("S5: a compaction of one session does not exclude runs of other sessions", async () => {
    const store = await prepare();
    await store.journal.create({ ...runRecord("c"), kind: "compaction" }, { number: 0, at: 1 });
    const elsewhere = { ...runRecord("a"), sessionId: formatSessionId("elsewhere") };
    expect(await store.journal.create(elsewhere, { number: 0, at: 1 })).toEqual({ kind: "created" });
  });

  test("S5: a run that create() starts beside apply() with whenIdle continues from the entry that is current when its turn comes", async () => {
    for (const first of ["apply", "create"]) {
      const store = await prepare();
      const pending = { ...append(entry("p", null), "pending"), atLeaf: true } as const;
      const create = async (): Promise<unknown> =>
        store.journal.create(runRecord("b"), { number: 0, at: 1, sessions: [pending] });
      const apply = (): Promise<string | undefined> => move(store);
      const [one, other] = first === "apply" ? [apply(), create()] : [create(), apply()];
      await Promise.all([one, other]);
      const busy = await (first === "apply" ? one : other);
      const entries = await store.sessions.read(sessionId, { includeHidden: true });
      const { parentId } = entries.find((each) => each.entry.id === "p")?.entry ?? {};
      expect(parentId).toBe(busy === undefined ? "a" : "b");
    }
  });
}
