import { formatAgentId, formatSessionId, type SessionEntry, type Store } from "../kernel/index.ts";
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

/** Tests of changes that need an idle session. */
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

  test("apply() with whenAt changes nothing if the session was deleted or has another leaf", async () => {
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

  test("S5: a run is refused while a run of another agent compacts the session, and not steered into it", async () => {
    const store = await prepare();
    const compaction = { ...runRecord("c"), kind: "compaction", agentId: otherAgent } as const;
    expect(await store.journal.create(compaction, { number: 0, at: 1 })).toEqual({ kind: "created" });
    const mail = { id: "submit a", from: "user", at: 1, body: { type: "steer", input: "hi" } } as const;
    for (const flight of [undefined, { steering: mail, always: true }]) {
      const creation = await store.journal.create(runRecord("a"), { number: 0, at: 2 }, flight);
      expect([creation.kind, creation.kind === "busy" && creation.run.runId]).toEqual([
        "busy",
        compaction.runId,
      ]);
    }
    expect(await move(store)).toBe(compaction.runId);
    await store.journal.delete(compaction.runId);
    expect(await store.journal.create(runRecord("a"), { number: 0, at: 2 })).toEqual({ kind: "created" });
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

  test("S5: of a concurrent create() and apply() with whenIdle, the run starts and continues from the leaf of its turn", async () => {
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
