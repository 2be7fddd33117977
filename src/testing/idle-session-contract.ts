import { formatAgentId, type SessionEntry, type Store } from "../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import {
  appendEntry as append,
  ownRun,
  runEnd,
  runRecord,
  sessionEntry as entry,
  sessionId,
} from "./store-fixtures.ts";

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

  test("S5: apply() with whenIdle changes nothing and returns the unfinished run, whichever agent it belongs to", async () => {
    const store = await prepare();
    const lease = await ownRun(store);
    const other = { ...runRecord("b"), agentId: formatAgentId({ name: "other" }) };
    await store.journal.create(other, { number: 0, at: 1 });
    const unfinished: readonly unknown[] = [lease.runId, other.runId];
    expect(unfinished.includes(await move(store))).toBe(true);
    await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 1)] });
    expect(await move(store)).toBe(other.runId);
    expect(await leafId(store)).toBe("b");
    await store.journal.delete(other.runId);
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
