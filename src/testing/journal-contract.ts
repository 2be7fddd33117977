import {
  formatAgentId,
  formatRunId,
  formatTopicId,
  type Commit,
  type JsonValue,
  type Lease,
  type Store,
} from "../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import {
  all,
  createRun,
  ownRun,
  rootTask,
  runRecord,
  sessionId,
  stepRecord,
  turnStart,
  agentId,
} from "./store-fixtures.ts";

/** What every `Journal` must do. */
export function journalContract({ test, expect, open }: ContractHarness): void {
  const plain = ({ number, at, steps = [], events = [] }: Commit): unknown => ({
    number,
    at,
    steps: steps.map(({ address, outcome }) => ({ address, outcome })),
    events,
  });

  test("a run is created once; the second time nothing changes", async () => {
    const store = await open();
    const record = runRecord();
    expect(await store.journal.create(record, { number: 0, at: 1 })).toEqual({ kind: "created" });
    const again = await store.journal.create({ ...record, createdAt: 99 }, { number: 0, at: 99 });
    expect(again).toEqual({ kind: "exists" });
    expect(await store.journal.find(record.runId)).toEqual(record);
    expect((await all(store.journal.read(record.runId))).map(({ at }) => at)).toEqual([1]);
  });

  test("what is written at once is there at once, and told as if it had been waited for", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const commit: Commit = { number: 1, at: 2, events: [turnStart(lease.runId, 1)] };
    await write(store, "appendNow", lease, commit);
    expect(await store.events.lastSeq(lease.runId)).toBe(1);
    expect(plain(await store.journal.append(lease, { number: 1, at: 3 }))).toEqual(plain(commit));
  });

  test("a run that does not exist is found as nothing and read as not_found", async () => {
    const store = await open();
    const { runId } = runRecord("nobody");
    expect(await store.journal.find(runId)).toBeUndefined();
    await expect(all(store.journal.read(runId))).rejects.toMatchObject({ code: "not_found" });
  });

  test("commits are read back whole and in order, from any number on", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const second: Commit = {
      number: 1,
      at: 2,
      steps: [stepRecord(0, { a: [1, null] })],
      events: [turnStart(lease.runId, 1)],
    };
    const third: Commit = { number: 2, at: 3, steps: [stepRecord(1, "x")] };
    await store.journal.append(lease, second);
    await store.journal.append(lease, third);
    expect((await all(store.journal.read(lease.runId, 1))).map(plain)).toEqual([plain(second), plain(third)]);
    expect((await all(store.journal.read(lease.runId))).length).toBe(3);
  });

  test("a store that can read a run at once reads what it reads otherwise", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const { journal } = store;
    await journal.append(lease, { number: 1, at: 2, events: [turnStart(lease.runId, 1)] });
    if (journal.readNow === undefined) return;
    const { run, commits } = journal.readNow(lease.runId) ?? {};
    expect(run).toEqual(await journal.find(lease.runId));
    expect(commits).toEqual(await all(journal.read(lease.runId)));
    expect(journal.readNow(runRecord("nobody").runId)).toBeUndefined();
  });

  for (const way of ways)
    test(`J1: the first writer wins, and the second gets what stands (${way})`, async () => {
      const store = await open();
      const lease = await ownRun(store);
      const first: Commit = { number: 1, at: 2, steps: [stepRecord(0, "first")] };
      const second: Commit = { number: 1, at: 3, steps: [stepRecord(0, "second")] };
      expect(plain(await write(store, way, lease, first))).toEqual(plain(first));
      expect(plain(await write(store, way, lease, second))).toEqual(plain(first));
      expect((await all(store.journal.read(lease.runId, 1))).map(plain)).toEqual([plain(first)]);
    });

  for (const way of ways)
    test(`J3: a writer that lost the run is refused and writes nothing (${way})`, async () => {
      const store = await open();
      const lost = await ownRun(store);
      await store.leases.seize(lost.runId, "w2");
      const late: Commit = {
        number: 1,
        at: 2,
        steps: [stepRecord(0, 1)],
        events: [turnStart(lost.runId, 1)],
      };
      await expect(write(store, way, lost, late)).rejects.toMatchObject({ code: "lease_lost" });
      expect((await all(store.journal.read(lost.runId))).length).toBe(1);
      expect(await store.events.lastSeq(lost.runId)).toBe(0);
    });

  for (const way of ways)
    test(`J10: a value that is not JSON is refused, and nothing of its commit is written (${way})`, async () => {
      const store = await open();
      const lease = await ownRun(store);
      for (const value of [Number.NaN, [undefined], { at: new Date(0) }, () => 1]) {
        const bad: Commit = {
          number: 1,
          at: 2,
          steps: [stepRecord(0, value as JsonValue)],
          events: [turnStart(lease.runId, 1)],
        };
        await expect(write(store, way, lease, bad)).rejects.toMatchObject({ code: "not_json" });
      }
      expect(await store.events.lastSeq(lease.runId)).toBe(0);
      await write(store, way, lease, { number: 1, at: 2, steps: [stepRecord(0, "good")] });
    });

  for (const way of ways)
    test(`a commit that leaves a gap, in its number or its events, is refused (${way})`, async () => {
      const store = await open();
      const lease = await ownRun(store);
      await expect(write(store, way, lease, { number: 2, at: 2 })).rejects.toMatchObject({
        code: "invalid_argument",
      });
      const gap: Commit = { number: 1, at: 2, events: [turnStart(lease.runId, 5)] };
      await expect(write(store, way, lease, gap)).rejects.toMatchObject({ code: "invalid_argument" });
      expect((await all(store.journal.read(lease.runId))).length).toBe(1);
    });

  test("what a commit holds for a session is applied with it, or not at all", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const entry = {
      type: "session_info",
      id: "e1",
      parentId: null,
      at: 2,
      runId: lease.runId,
      taskId: rootTask,
      name: "talk",
    } as const;
    const append = { type: "append", sessionId, agentId, entry, visibility: "visible" } as const;
    const orphan = { ...append, entry: { ...entry, id: "e2", parentId: "nowhere" } };
    const bad: Commit = { number: 1, at: 2, steps: [stepRecord(0, 1)], sessions: [append, orphan] };
    await expect(store.journal.append(lease, bad)).rejects.toMatchObject({ code: "not_found" });
    expect(await store.sessions.read(sessionId)).toEqual([]);
    expect((await all(store.journal.read(lease.runId))).length).toBe(1);
    await store.journal.append(lease, { number: 1, at: 2, sessions: [append] });
    expect((await store.sessions.read(sessionId)).map((each) => each.entry)).toEqual([entry]);
  });

  test("what a commit sends to inboxes, other runs and topics arrives with it, or not at all", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const other = await createRun(store, "other");
    const reader = formatAgentId({ name: "reader" });
    const topicId = formatTopicId({ type: "news", source: "eu" });
    const message = { id: "m1", from: agentId, to: reader, body: "hi", sentAt: 1 };
    const gone = formatRunId("gone");
    const body = { type: "pause" } as const;
    const commit: Commit = {
      number: 1,
      at: 2,
      inbox: [{ type: "deliver", message }],
      mail: [
        { id: "x", runId: other, from: "a", at: 2, body },
        { id: "x", runId: gone, from: "a", at: 2, body },
      ],
      topics: [{ type: "follow", topicId, agentId: reader }],
    };
    const late = store.journal.append({ ...lease, epoch: lease.epoch - 1 }, commit);
    await expect(late).rejects.toMatchObject({ code: "lease_lost" });
    expect(await store.inbox.peek(reader)).toEqual([]);
    await store.journal.append(lease, commit);
    expect(await store.inbox.peek(reader)).toEqual([{ message, deliveries: 0 }]);
    expect((await store.mailbox.read(other)).map(({ id }) => id)).toEqual(["x"]);
    expect(await store.topics.followers(topicId)).toEqual([reader]);
    const ack = { type: "ack", agentId: reader, messageIds: ["m1"] } as const;
    await store.journal.append(lease, { number: 2, at: 3, inbox: [ack] });
    expect(await store.inbox.peek(reader)).toEqual([]);
  });

  test("seats and money come back as the commands they were", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const headcount = [{ type: "suspend", taskId: rootTask }] as const;
    const ledger = [{ type: "refund", id: "r1" }] as const;
    await store.journal.append(lease, { number: 1, at: 2, headcount, ledger });
    const [commit] = await all(store.journal.read(lease.runId, 1));
    expect(commit?.headcount).toEqual(headcount);
    expect(commit?.ledger).toEqual(ledger);
  });

  test("a deleted run is gone with its events and mail, and its id may be used again", async () => {
    const store = await open();
    const runId = await createRun(store);
    await store.blobs.put(runId, new Uint8Array([1]));
    await store.journal.delete(runId);
    await store.journal.delete(runId);
    expect(await store.journal.find(runId)).toBeUndefined();
    await expect(store.mailbox.read(runId)).rejects.toMatchObject({ code: "not_found" });
    await createRun(store);
    expect(await store.events.lastSeq(runId)).toBe(0);
  });
}

/** Both ways to write must keep the promises; the second is a store's own choice, each time. */
const ways = ["append", "appendNow"] as const;

async function write(
  store: Store,
  way: (typeof ways)[number],
  lease: Lease,
  commit: Commit,
): Promise<Commit> {
  const standing = way === "appendNow" ? store.journal.appendNow?.(lease, commit) : undefined;
  return standing ?? store.journal.append(lease, commit);
}
