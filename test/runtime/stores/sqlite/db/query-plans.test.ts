import { expect, onTestFinished, test, vi } from "vitest";
import {
  formatAgentId,
  formatRunId,
  formatSessionId,
  formatTopicId,
  eventDraft,
  noUsage,
  noUsageDelta,
  unnamedSessionId,
  usageDimensions,
  userMessage,
  type RunId,
  type RunQuery,
  type SessionId,
  type Store,
} from "../../../../../src/kernel/index.ts";
import { sha256 } from "../../../../../src/runtime/process/sha256.ts";
import { Database } from "../../../../../src/runtime/stores/sqlite/db/database.ts";
import { storeOn } from "../../../../../src/runtime/stores/sqlite/store.ts";
import {
  agentId,
  all,
  createRun,
  ownRun,
  placed,
  rootTask,
  runRecord,
  sessionId,
  stepRecord,
  turnStart,
} from "../../../../../src/testing/contracts/store-fixtures.ts";
import { newPath } from "../store-files.ts";

/** Scans of one row, or of values that the statement itself was given or found. */
const short = /SCAN (placed|freed_changes|json_each|CONSTANT ROW|\d+-ROW VALUES|sqlite_schema|\(subquery)/;
/** Scans that follow the order of an index and stop at the limit of the query. */
const bounded = /SCAN sessions USING INDEX sessions_by_age/;

async function doEverything(store: Store): Promise<void> {
  const lease = await ownRun(store);
  const { runId } = lease;
  const topicId = formatTopicId({ type: "news", source: "eu" });
  const reader = formatAgentId({ name: "reader" });
  const message = { id: "m", from: agentId, to: reader, body: 1, sentAt: 1 };
  const entry = {
    type: "message",
    id: "e",
    parentId: null,
    at: 1,
    runId,
    taskId: rootTask,
    message: userMessage("x"),
  } as const;
  await store.journal.append(lease, {
    number: 1,
    at: 1,
    steps: [stepRecord(0, 1)],
    events: [turnStart(runId, 1)],
    sessions: [
      { type: "append", sessionId, agentId, entry, visibility: "hidden" },
      {
        type: "append",
        sessionId,
        agentId,
        entry: { ...entry, id: "f", parentId: "e" },
        visibility: "hidden",
      },
      {
        type: "append",
        sessionId,
        agentId,
        entry: { ...entry, id: "g" },
        visibility: "hidden",
        atLeaf: true,
      },
      { type: "reveal", sessionId, runId },
    ],
    mail: [{ id: "x", runId, from: "a", at: 1, body: { type: "pause" } }],
    inbox: [
      { type: "deliver", message },
      { type: "take", agentId: reader, messageIds: ["m", "none"] },
      { type: "nack", agentId: reader, messageIds: ["m"] },
    ],
    topics: [{ type: "follow", topicId, agentId: reader }],
    mailThrough: 0,
  });
  await store.journal.append(lease, { number: 1, at: 1 });
  await store.inbox.peek(reader);
  await store.inbox.waiting([reader]);
  await store.inbox.find(reader, ["m"]);
  for (const mail of ["each", "together"] as const) {
    await store.inbox.next(reader, { mode: mail, now: 1 });
    await store.inbox.next(reader, { mode: mail, now: 1, runId });
  }
  await store.inbox.deadLetters(reader);
  await store.inbox.deadLetters();
  await store.inbox.deliver({ ...message, id: "dead" });
  for (let round = 0; round < store.inbox.settings.maxDeliveries; round++)
    await store.inbox.nack(reader, ["dead"]);
  await store.inbox.redeliver(reader);
  await store.inbox.ack(reader, ["m"]);
  await store.topics.followers(topicId);
  await store.mailbox.read(runId);
  await store.sessions.read(sessionId);
  await store.sessions.list();
  await store.sessions.list({ agentId });
  await store.sessions.list({ agentId, under: sessionId });
  await store.sessions.list({ tenantId: "acme", text: "plan", withWorkers: false });
  await store.sessions.list({ tenantId: "acme", userId: "ann", agentId });
  await store.sessions.list({ tenantId: null, userId: null, after: "5_1" });
  await store.sessions.find(sessionId);
  await store.sessions.read(sessionId, { after: "e", limit: 5, includeHidden: true });
  await store.sessions.readPath(sessionId);
  await store.sessions.readPath(sessionId, { leafId: "e", from: "compaction" });
  const later = { ...entry, id: "h", runId: null, taskId: null };
  const said = {
    runId,
    taskId: rootTask,
    at: 1,
    parentId: "e",
    stem: "s",
    from: 0,
    messages: [entry.message],
  };
  await store.sessions.apply([
    { type: "append", sessionId, agentId, entry: { ...entry, id: "p" }, visibility: "pending" },
    { type: "append", sessionId, agentId, entry: later, visibility: "visible" },
    { type: "reveal", sessionId, runId },
    { type: "say", sessionId, agentId, batch: said, visibility: "visible" },
  ]);
  const label = { type: "label", id: "l", parentId: "h", at: 1, runId: null, taskId: null } as const;
  const info = { ...label, type: "session_info", id: "i", name: "plan" } as const;
  await store.sessions.apply([
    {
      type: "append",
      sessionId,
      agentId,
      entry: { ...label, targetId: "h", label: "x" },
      visibility: "visible",
    },
    { type: "append", sessionId, agentId, entry: info, visibility: "visible" },
  ]);
  const long = { ...entry, id: "long", message: userMessage("x".repeat(10_000)), runId: null, taskId: null };
  await store.sessions.apply([{ type: "append", sessionId, agentId, entry: long, visibility: "visible" }]);
  await store.sessions.apply([], { copy: { from: sessionId, leafId: "long", to: formatSessionId("copy") } });
  await store.sessions.apply([{ type: "remove", sessionId, runId }]);
  const caps = {
    perDayUsd: 1,
    perTenantPerDayUsd: 1,
    perUserPerDayUsd: 1,
    perMonthUsd: 1,
    perAgentPerMonthUsd: 1,
  };
  await store.usage.draw(lease, { day: "2026-11-16", agent: "a", need: 1, want: 1, caps });
  await store.journal.append(lease, {
    number: 2,
    at: 1,
    usage: [{ ...noUsageDelta, day: "2026-11-16", agent: "a", model: null }],
  });
  await store.leases.check(lease);
  await store.leases.release(lease, { kind: "suspended", wakeAt: 5 });
  await store.leases.claim({ workerId: "w1", limit: 5, now: 9 });
  await store.leases.claim({ workerId: "w1", limit: 5, now: 9, agents: [{ agentId }] });
  await store.leases.claim({ workerId: "w1", limit: 5, now: 9, agents: [{ agentId, version: "1" }] });
  await store.leases.dismiss("w1");
  await store.leases.enlist("w2");
  await store.leases.claim({ workerId: "w2", limit: 5, now: 9 });
  await useLimits(store);
  await all(store.journal.read(runId));
  await all(store.events.read(runId, 1));
  await store.events.verify(runId);
  const tail = store.events.tail(runId)[Symbol.asyncIterator]();
  await tail.next();
  await tail.return?.();
  const hash = await store.contents.put({ runId }, new Uint8Array(10));
  await store.contents.get({ runId }, hash);
  await store.contents.share(hash, { from: { runId }, to: { sessionId } });
  await store.contents.owners({ sessionId }, hash);
  await store.contents.release({ sessionId }, hash);
  const largeStep = stepRecord(0, "x".repeat(10_000));
  const erases = [{ taskId: rootTask, agentId }];
  const other = runRecord("large");
  await store.journal.create(other, { number: 0, at: 1, steps: [largeStep], erases });
  await all(store.journal.read(other.runId));
  await store.journal.find(runId);
  await store.journal.approvals();
  await store.journal.approvals({ runId, agentId, userId: "ann", tenantId: "acme" });
  await listEverything(store);
  await store.journal.collect({ endedBefore: 5 });
  const unnamed = unnamedSessionId(runId);
  await store.sessions.apply([{ type: "append", sessionId: unnamed, agentId, entry, visibility: "visible" }]);
  await store.sessions.collect({ unnamedBefore: 9 });
  await store.sessions.delete(sessionId);
  await store.journal.delete(runId);
  await store.sessions.delete(sessionId);
  await createRun(store, "b");
  await useRecords(store);
}

/** L17: runs are queued, admitted, woken, ended and reopened at both kinds of limits. */
async function useLimits(store: Store): Promise<void> {
  const concurrency = { name: "order", key: "k", limit: 1 };
  const rate = { name: "order", key: "k", limit: 2, perMs: 10 };
  for (const name of ["flow1", "flow2", "flow3", "flow4"])
    await store.journal.create({ ...runRecord(name), flow: { concurrency, rate } }, { number: 0, at: 1 });
  for (let now = 10; now < 60; now += 10)
    for (const lease of await store.leases.claim({ workerId: "w2", limit: 5, now })) {
      const end = placed(
        lease.runId,
        0,
        eventDraft("run_end", { status: "failed", usage: noUsage, costUsd: 0, turns: 0 }),
      );
      await store.journal.append(lease, { number: 1, at: 2, events: [end] });
      await store.journal.append(lease, { number: 2, at: 3, tasks: [{ type: "reopen", taskId: rootTask }] });
      await store.leases.release(lease, { kind: "ended" });
    }
  const only = [formatRunId("flow4")];
  await store.leases.claim({ workerId: "w2", limit: 5, now: 99, only });
}

async function useRecords({ records, usage }: Store): Promise<void> {
  const record = { namespace: "plans", key: "a", value: 1, dueAt: 1 };
  const stored = await records.put(record, "absent");
  await records.get({ namespace: "plans", key: "a" });
  await records.list({ namespace: "plans", tenantId: "acme", prefix: "a", after: "a" });
  await records.due("plans", 9);
  await records.nextDueAt("plans");
  if (stored.kind === "stored") await records.delete({ namespace: "plans", key: "a" }, stored.version);
  for (const by of usageDimensions) {
    await usage.sum({ by });
    await usage.sum({ by, from: "2026-01-01", to: "2026-01-31", tenantId: "acme", userId: "ann" });
  }
}

async function listEverything({ journal }: Store): Promise<void> {
  const filters = [
    {},
    { sessionId },
    { agentId },
    { tenantId: null },
    { agentId, tenantId: "acme" },
    { userId: "ann" },
    { userId: "ann", tenantId: "acme" },
    { kind: "compaction" as const },
    { metadata: { team: "red", ticket: "42" } },
    { createdAfter: 1 },
    { createdAfter: 1, createdBefore: 9, agentId },
  ];
  for (const filter of filters) {
    await journal.list(filter);
    await journal.list({
      ...filter,
      status: ["pending", "running", "waiting", "paused", "completed", "failed"],
    });
  }
}

test("no SQLite statement scans all rows of a table, so that no call gets slower as the file grows", async () => {
  const database = await Database.open({ path: await newPath(), durability: "normal", busyLimitMs: 1_000 });
  const statements = vi.spyOn(database, "statement");
  const store = await storeOn(database, { hash: sha256 });
  onTestFinished(() => store.close());
  await doEverything(store);
  const sqls = new Set(statements.mock.calls.map(([sql]) => sql));
  expect(sqls.size).toBeGreaterThan(60);
  const scans: string[] = [];
  for (const sql of sqls) {
    if (/^(PRAGMA|BEGIN|COMMIT|ROLLBACK)/.test(sql)) continue;
    for (const { detail } of database.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)) {
      if (detail.startsWith("SCAN") && !short.test(detail) && !bounded.test(detail))
        scans.push(`${detail}: ${sql}`);
    }
  }
  expect(scans).toEqual([]);
});

test("no SQLite statement has two lower or two upper bounds for an entry's place, because SQLite would use only one", async () => {
  const database = await Database.open({ path: await newPath(), durability: "normal", busyLimitMs: 1_000 });
  const statements = vi.spyOn(database, "statement");
  const store = await storeOn(database, { hash: sha256 });
  onTestFinished(() => store.close());
  await doEverything(store);
  const sqls = [...new Set(statements.mock.calls.map(([sql]) => sql))];
  const bounds = (sql: string, sign: string): number => sql.split(`entries.id ${sign}`).length - 1;
  const ofSession = sqls.filter((sql) => bounds(sql, ">") > 0);
  expect(ofSession.length).toBeGreaterThan(5);
  expect(ofSession.filter((sql) => bounds(sql, ">") > 1 || bounds(sql, "<") > 1)).toEqual([]);
});

test("list() on SQLite reads a page for one filter from an index, in order, and sorts nothing", async () => {
  const database = await Database.open({ path: await newPath(), durability: "normal", busyLimitMs: 1_000 });
  const store = await storeOn(database, { hash: sha256 });
  onTestFinished(() => store.close());
  const filters: readonly RunQuery[] = [
    {},
    { sessionId },
    { agentId },
    { tenantId: "acme" },
    { userId: "ann", tenantId: "acme" },
    { kind: "compaction" },
    { metadata: { team: "red" } },
    { createdAfter: 1 },
    { createdBefore: 1 },
    { createdAfter: 1, createdBefore: 9 },
    { status: "completed" },
    { status: "waiting" },
  ];
  for (const filter of filters) {
    const statements = vi.spyOn(database, "statement");
    await store.journal.list(filter);
    const lists = statements.mock.calls.map(([sql]) => sql).filter((sql) => sql.includes("LIMIT ?"));
    statements.mockRestore();
    expect(lists.length).toBeGreaterThan(0);
    // The runs of a session are few, and sorted by whether they have ended.
    const sorts = filter.sessionId === undefined ? [] : ["USE TEMP B-TREE FOR ORDER BY"];
    if (filter.status === "waiting") lists.splice(1);
    for (const sql of lists) {
      const plan = database.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => detail);
      expect([filter, plan.filter((detail) => detail.startsWith("USE TEMP"))]).toEqual([filter, sorts]);
    }
  }
});

test("collect() on SQLite reads unnamed sessions from their index, page by page, and writes nothing if it removes none", async () => {
  const database = await Database.open({ path: await newPath(), durability: "normal", busyLimitMs: 1_000 });
  const store = await storeOn(database, { hash: sha256 });
  onTestFinished(() => store.close());
  const message = {
    type: "message",
    parentId: null,
    at: 1,
    taskId: rootTask,
    message: userMessage("hi"),
  } as const;
  const runId = formatRunId("r");
  const say = (to: SessionId, by: RunId | null): Promise<unknown> =>
    store.sessions.apply([
      {
        type: "append",
        sessionId: to,
        agentId,
        entry: { ...message, id: `by ${by}`, runId: by },
        visibility: "visible",
      },
    ]);
  await say(sessionId, runId);
  for (const by of [runId, null]) await say(unnamedSessionId(runId), by);
  const statements = vi.spyOn(database, "statement");
  expect(await store.sessions.collect({ unnamedBefore: 9 })).toBe(0);
  const sqls = statements.mock.calls.map(([sql]) => sql);
  expect(sqls.filter((sql) => !sql.startsWith("SELECT"))).toEqual([]);
  const [page = ""] = sqls;
  const plan = database.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${page}`).map(({ detail }) => detail);
  expect(plan).toEqual([
    "SEARCH sessions USING COVERING INDEX sessions_unnamed ((updated_at,session_id)>(?,?) AND updated_at<?)",
  ]);
});
