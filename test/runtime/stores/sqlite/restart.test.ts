import { expect, test } from "vitest";
import {
  formatAgentId,
  formatTopicId,
  userMessage,
  type Commit,
  type RunId,
  type SessionChange,
} from "../../../../src/kernel/index.ts";
import {
  agentId,
  all,
  createRun,
  ownRun,
  rootTask,
  runRecord,
  sessionId,
  stepRecord,
  turnStart,
} from "../../../../src/testing/contracts/store-fixtures.ts";
import { sha256 } from "../../../../src/runtime/process/sha256.ts";
import { memoryStore } from "../../../../src/runtime/stores/memory/store.ts";
import { postgresStore } from "../../../../src/runtime/stores/postgres/index.ts";
import { sqliteStore } from "../../../../src/runtime/stores/sqlite/store.ts";
import { newPath, openStore } from "./store-files.ts";
import { startProcess } from "./store-process.ts";

test("E1: a SQLite store that is opened without a hash function writes a chain of SHA-256 hashes", async () => {
  const path = await newPath();
  const store = await sqliteStore({ path });
  const { runId } = await ownRun(store);
  await store.close();
  const again = await openStore(path, { hash: sha256 });
  expect(await again.events.verify(runId)).toMatchObject({ ok: true, events: 1 });
});

test.each([
  ["path undefined of sqliteStore()", () => sqliteStore({} as never)],
  ['hash "md5" of sqliteStore()', () => sqliteStore({ path: "/nonexistent/x.db", hash: "md5" as never })],
  ["url undefined of postgresStore()", () => postgresStore({} as never)],
  ['hash "md5" of postgresStore()', () => postgresStore({ url: "postgres://x", hash: "md5" as never })],
  ['hash "md5" of memoryStore()', async () => memoryStore({ hash: "md5" as never })],
])("an invalid %s is refused when the SQLite store is opened", async (what, open) => {
  await expect(open()).rejects.toThrow(`invalid ${what}: expected`);
});

test("a SQLite store that is closed and opened again returns everything that was acknowledged", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await ownRun(store);
  const { runId } = lease;
  const other = await createRun(store, "other");
  const reader = formatAgentId({ name: "reader" });
  const topicId = formatTopicId({ type: "news", source: "eu" });
  const message = { id: "m1", from: agentId, to: reader, body: { a: [1, null] }, sentAt: 1 };
  const entry = {
    type: "message",
    id: "e1",
    parentId: null,
    at: 5,
    runId,
    taskId: rootTask,
    message: userMessage("hi"),
  } as const;
  const append: SessionChange = { type: "append", sessionId, agentId, entry, visibility: "visible" };
  const commit: Commit = {
    number: 1,
    at: 2,
    steps: [stepRecord(0, { deep: [{ value: "ü😀\u0000" }] })],
    events: [turnStart(runId, 1)],
    voids: [{ taskId: rootTask, address: stepRecord(9, 0).address }],
    resolves: [{ taskId: rootTask, wait: "w", value: null }],
    sessions: [append],
    mail: [{ id: "x", runId: other, from: "a", at: 2, body: { type: "pause" } }],
    inbox: [{ type: "deliver", message }],
    topics: [{ type: "follow", topicId, agentId: reader }],
  };
  await store.journal.append(lease, commit);
  const hash = await store.contents.put(
    { runId },
    Uint8Array.from({ length: 600_000 }, (_, index) => index % 251),
  );
  await store.leases.release(lease, { kind: "suspended", wakeAt: 50 });
  const verdict = await store.events.verify(runId);
  await store.close();

  const again = await openStore(path);
  expect(await again.journal.find(runId)).toEqual(runRecord());
  expect(await all(again.journal.read(runId, 1))).toEqual([commit]);
  expect(await all(again.events.read(runId, 1))).toEqual(commit.events);
  expect(await again.events.verify(runId)).toEqual(verdict);
  expect((await again.mailbox.read(other)).map(({ id, place }) => [id, place])).toEqual([["x", 0]]);
  expect(await again.inbox.peek(reader)).toEqual([{ message, deliveries: 0 }]);
  expect(await again.topics.followers(topicId)).toEqual([reader]);
  expect(await again.sessions.read(sessionId)).toEqual([{ entry, visibility: "visible" }]);
  expect((await again.contents.get({ runId }, hash))?.length).toBe(600_000);
  await again.leases.enlist("w2");
  const claimed = await again.leases.claim({ workerId: "w2", limit: 9, now: 60 });
  expect(claimed.map((each) => each.runId).toSorted()).toEqual([runId, other].toSorted());
  expect(claimed.find((each) => each.runId === runId)?.epoch).toBe(lease.epoch + 1);
});

test("J1: two SQLite stores on the same file share a lease, and both return the commit that was stored first", async () => {
  const path = await newPath();
  const [one, other] = [await openStore(path), await openStore(path)];
  const lease = await ownRun(one);
  const commit = (number: number, value: string): Commit => ({
    number,
    at: number,
    steps: [stepRecord(number, value)],
    events: [turnStart(lease.runId, number)],
  });
  await one.journal.append(lease, commit(1, "one"));
  await other.journal.append(lease, commit(2, "other"));
  expect(await one.journal.append(lease, commit(2, "one"))).toEqual(commit(2, "other"));
  await one.journal.append(lease, commit(3, "one"));
  await expect(other.journal.append(lease, commit(5, "other"))).rejects.toMatchObject({
    code: "invalid_argument",
  });
  await other.journal.append(lease, commit(4, "other"));
  expect((await all(one.journal.read(lease.runId, 1))).map(({ number }) => number)).toEqual([1, 2, 3, 4]);
  expect(await one.events.verify(lease.runId)).toMatchObject({ ok: true, events: 5 });
});

test("everything that a SQLite process acknowledged before it was killed is stored", async () => {
  const path = await newPath();
  for (let round = 0; round < 3; round++) {
    const writer = await startProcess(path, "write", `${round}`);
    const acknowledged: string[] = [];
    while (acknowledged.length < 100 * (round + 1)) acknowledged.push(await writer.line());
    await writer.kill();
    acknowledged.push(...(await writer.rest()));
    const store = await openStore(path);
    const runId = `run_${round}` as RunId;
    const numbers = (await all(store.journal.read(runId, 1))).map(({ number }) => `${number}`);
    expect(numbers.slice(0, acknowledged.length)).toEqual(acknowledged);
    expect(await store.events.verify(runId)).toMatchObject({ ok: true, events: numbers.length + 1 });
    await store.close();
  }
});
