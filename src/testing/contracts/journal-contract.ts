import {
  formatAgentId,
  formatRunId,
  formatTopicId,
  type Commit,
  type JsonValue,
  type Lease,
  type Store,
} from "../../kernel/index.ts";
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

/** Tests of the rules that every implementation of `Journal` must keep. */
export function journalContract({ test, expect, open }: ContractHarness): void {
  const plain = ({ number, at, steps = [], events = [] }: Commit): unknown => ({
    number,
    at,
    steps: steps.map(({ address, outcome }) => ({ address, outcome })),
    events,
  });

  test("creating a run a second time changes nothing", async () => {
    const store = await open();
    const record = runRecord();
    expect(await store.journal.create(record, { number: 0, at: 1 })).toEqual({ kind: "created" });
    const again = await store.journal.create({ ...record, createdAt: 99 }, { number: 0, at: 99 });
    expect(again).toEqual({ kind: "exists" });
    expect(await store.journal.find(record.runId)).toEqual(record);
    expect((await all(store.journal.read(record.runId))).map(({ at }) => at)).toEqual([1]);
  });

  test("a commit and its events are readable as soon as append() has completed", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const commit: Commit = { number: 1, at: 2, events: [turnStart(lease.runId, 1)] };
    const stored = store.journal.append(lease, commit);
    if (stored instanceof Promise) await stored;
    expect(await store.events.lastSeq(lease.runId)).toBe(1);
    expect(plain(await store.journal.append(lease, { number: 1, at: 3 }))).toEqual(plain(commit));
  });

  test("find() returns undefined and read() fails with not_found for a run that does not exist", async () => {
    const store = await open();
    const { runId } = runRecord("nobody");
    expect(await store.journal.find(runId)).toBeUndefined();
    await expect(all(store.journal.read(runId))).rejects.toMatchObject({ code: "not_found" });
  });

  test("read() returns whole commits in order, starting at any number", async () => {
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

  test("replay() visits the commits that read() returns and returns the run that find() returns", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const { journal } = store;
    await journal.append(lease, { number: 1, at: 2, events: [turnStart(lease.runId, 1)] });
    const commits: Commit[] = [];
    const run = await journal.replay(lease.runId, (commit) => commits.push(commit));
    expect(run).toEqual(await journal.find(lease.runId));
    expect(commits).toEqual(await all(journal.read(lease.runId)));
    const missing = journal.replay(runRecord("nobody").runId, (commit) => commits.push(commit));
    await expect(missing).rejects.toMatchObject({ code: "not_found" });
  });

  for (const situation of situations)
    test(`J1: the first writer of a commit wins, and the second gets the stored commit (${situation})`, async () => {
      const store = await open();
      const lease = await ownRunAs(store, situation);
      const first: Commit = { number: 1, at: 2, steps: [stepRecord(0, "first")] };
      const second: Commit = { number: 1, at: 3, steps: [stepRecord(0, "second")] };
      expect(plain(await store.journal.append(lease, first))).toEqual(plain(first));
      expect(plain(await store.journal.append(lease, second))).toEqual(plain(first));
      expect((await all(store.journal.read(lease.runId, 1))).map(plain)).toEqual([plain(first)]);
    });

  for (const situation of situations)
    test(`J3: a writer that lost its lease is refused and writes nothing (${situation})`, async () => {
      const store = await open();
      const lost = await ownRunAs(store, situation);
      await store.leases.seize(lost.runId, "w2");
      const late: Commit = {
        number: 1,
        at: 2,
        steps: [stepRecord(0, 1)],
        events: [turnStart(lost.runId, 1)],
      };
      await expect(store.journal.append(lost, late)).rejects.toMatchObject({ code: "lease_lost" });
      expect((await all(store.journal.read(lost.runId))).length).toBe(1);
      expect(await store.events.lastSeq(lost.runId)).toBe(0);
    });

  for (const situation of situations)
    test(`J10: a commit with a value that is not JSON is refused as a whole (${situation})`, async () => {
      const store = await open();
      const lease = await ownRunAs(store, situation);
      for (const value of [Number.NaN, [undefined], { at: new Date(0) }, () => 1]) {
        const bad: Commit = {
          number: 1,
          at: 2,
          steps: [stepRecord(0, value as JsonValue)],
          events: [turnStart(lease.runId, 1)],
        };
        await expect(store.journal.append(lease, bad)).rejects.toMatchObject({ code: "not_json" });
      }
      expect(await store.events.lastSeq(lease.runId)).toBe(0);
      await store.journal.append(lease, { number: 1, at: 2, steps: [stepRecord(0, "good")] });
    });

  for (const situation of situations)
    test(`a commit that leaves a gap in its number or its events is refused (${situation})`, async () => {
      const store = await open();
      const lease = await ownRunAs(store, situation);
      await expect(store.journal.append(lease, { number: 2, at: 2 })).rejects.toMatchObject({
        code: "invalid_argument",
      });
      const gap: Commit = { number: 1, at: 2, events: [turnStart(lease.runId, 5)] };
      await expect(store.journal.append(lease, gap)).rejects.toMatchObject({ code: "invalid_argument" });
      expect((await all(store.journal.read(lease.runId))).length).toBe(1);
    });

  test("the session changes of a commit are applied together with it or not at all", async () => {
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

  test("messages that a commit sends to inboxes, other runs and topics arrive with the commit or not at all", async () => {
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

  test("the seat and money commands of a commit are read back unchanged", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const headcount = [{ type: "suspend", taskId: rootTask }] as const;
    const ledger = [{ type: "refund", id: "r1" }] as const;
    await store.journal.append(lease, { number: 1, at: 2, headcount, ledger });
    const [commit] = await all(store.journal.read(lease.runId, 1));
    expect(commit?.headcount).toEqual(headcount);
    expect(commit?.ledger).toEqual(ledger);
  });

  test("deleting a run deletes its events and mail and frees its id", async () => {
    const store = await open();
    const runId = await createRun(store);
    await store.contents.put({ runId }, new Uint8Array([1]));
    await store.journal.delete(runId);
    await store.journal.delete(runId);
    expect(await store.journal.find(runId)).toBeUndefined();
    await expect(store.mailbox.read(runId)).rejects.toMatchObject({ code: "not_found" });
    await createRun(store);
    expect(await store.events.lastSeq(runId)).toBe(0);
  });
}

/**
 * Situations in which a store may write differently: synchronously for a worker's only run, grouped for several runs.
 */
const situations = ["its worker's only run", "one of its worker's two runs"] as const;

async function ownRunAs(store: Store, situation: (typeof situations)[number]): Promise<Lease> {
  const lease = await ownRun(store);
  if (situation === "one of its worker's two runs") await ownRun(store, "b");
  return lease;
}
