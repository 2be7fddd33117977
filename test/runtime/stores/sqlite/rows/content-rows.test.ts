import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import {
  eventDraft,
  messageText,
  assistantMessage,
  toolMessage,
  type Commit,
  type Lease,
  type SessionEntry,
  type Store,
} from "../../../../../src/kernel/index.ts";
import {
  agentId,
  all,
  ownRun,
  placed,
  rootTask,
  runEnd,
  runRecord,
  sessionEntry,
  sessionId,
  stepRecord,
} from "../../../../../src/testing/contracts/store-fixtures.ts";
import { connect, count, newPath, openStore, until } from "../store-files.ts";

const secret = "größer als alles";
/** The text contains characters of two bytes, so that pieces end in the middle of a character. */
const large = `${secret} `.repeat(50_000);
const small = "small";

function saying(lease: Lease, number: number, text: string): Commit {
  const event = placed(lease.runId, number, eventDraft("message_end", { message: assistantMessage(text) }));
  return { number, at: 1, steps: [stepRecord(number, text)], events: [event] };
}

/** Appends three commits, of which the second holds a large value twice. */
async function speak(store: Store, name = "a"): Promise<Lease> {
  const lease = await ownRun(store, name);
  for (const [index, text] of [small, large, small].entries())
    await store.journal.append(lease, saying(lease, index + 1, text));
  return lease;
}

/** Appends a commit whose record, event and entry hold a tool's output. */
async function callTool(store: Store, lease: Lease, text: string): Promise<void> {
  const result = { output: { type: "text", text } as const, isError: false };
  const part = { type: "tool_result", callId: "c", toolName: "look", ...result } as const;
  const draft = eventDraft("tool_execution_end", {
    callId: "c",
    toolName: "look",
    result: structuredClone(result),
    durationMs: 1,
    status: "ok",
  });
  const entry = { ...sessionEntry(lease.runId, null), message: toolMessage([structuredClone(part)]) };
  await store.journal.append(lease, {
    number: 1,
    at: 2,
    steps: [{ ...stepRecord(0, result), kind: "tool" }],
    events: [placed(lease.runId, 1, draft)],
    sessions: [{ type: "append", sessionId, agentId, entry: entry as SessionEntry, visibility: "visible" }],
  });
}

const tables = ["contents", "content_pieces", "content_owners"];
const rows = (path: string): readonly number[] => tables.map((table) => count(path, table));

function storedBytes(path: string): number {
  const [row] = connect(path)
    .prepare(
      `SELECT (SELECT total(length(data)) FROM content_pieces) + (SELECT total(length(body)) FROM commits)
         + (SELECT total(length(body)) FROM entries) AS bytes`,
    )
    .all();
  return Number(row?.["bytes"]);
}

test("V4: SQLite stores a large value outside the row of its commit and reads it back unchanged, in another store too", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const { runId } = await speak(store);
  const commits = connect(path).prepare("SELECT length(body) AS size, refs FROM commits ORDER BY id").all();
  expect(commits.map(({ size }) => Number(size) < 1_000)).toEqual([true, true, true, true]);
  expect(commits.map(({ refs }) => refs !== null)).toEqual([false, false, true, false]);
  expect(count(path, "content_pieces")).toBeGreaterThan(1);
  for (const each of [store, await openStore(path)]) {
    const steps = (await all(each.journal.read(runId))).flatMap((commit) => commit.steps ?? []);
    expect(steps).toEqual([stepRecord(1, small), stepRecord(2, large), stepRecord(3, small)]);
    const [told] = await all(each.events.read(runId, 2));
    expect(told?.type === "message_end" && messageText(told.data.message)).toBe(large);
    expect(await each.events.verify(runId)).toMatchObject({ ok: true, events: 4 });
  }
});

test("V2: SQLite stores the same value in a record, an event and an entry once, and no copy for a second run", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const text = "result ".repeat(8_000);
  const one = await ownRun(store, "one");
  await callTool(store, one, text);
  expect(rows(path)).toEqual([1, 1, 2]);
  expect(storedBytes(path) / text.length).toBeLessThan(1.05);
  const two = await ownRun(store, "two");
  await callTool(store, two, text);
  expect(rows(path)).toEqual([1, 1, 4]);
  await store.journal.delete(one.runId);
  expect(rows(path)).toEqual([1, 1, 3]);
  await store.journal.append(two, { number: 2, at: 3, events: [runEnd(two.runId, 2)] });
  await store.leases.release(two, { kind: "ended" });
  await store.sessions.delete(sessionId);
  expect(rows(path)).toEqual([1, 1, 1]);
  await store.journal.delete(two.runId);
  expect(rows(path)).toEqual([0, 0, 0]);
});

test("V3: each tenant has its own copy of a large value in SQLite", async () => {
  const path = await newPath();
  const store = await openStore(path);
  for (const tenantId of ["acme", "other", null])
    await store.journal.create(
      { ...runRecord(`of-${tenantId}`), tenantId },
      { number: 0, at: 1, steps: [stepRecord(0, large)] },
    );
  expect(count(path, "contents")).toBe(3);
  await store.journal.delete(runRecord("of-acme").runId);
  expect(count(path, "contents")).toBe(2);
  const [first] = await all(store.journal.read(runRecord("of-other").runId));
  expect(first?.steps).toEqual([stepRecord(0, large)]);
});

test("J1: a run in SQLite can start with a large value, and a commit whose number is taken leaves no content", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const first: Commit = { number: 0, at: 1, steps: [stepRecord(0, large)] };
  await store.journal.create(runRecord("b"), first);
  expect((await all(store.journal.read(runRecord("b").runId)))[0]?.steps).toEqual(first.steps);
  const lease = await ownRun(store);
  await store.journal.append(lease, saying(lease, 1, small));
  const before = rows(path);
  expect(await store.journal.append(lease, saying(lease, 1, `lost ${large}`))).toEqual(
    saying(lease, 1, small),
  );
  await expect(
    store.journal.append({ ...lease, epoch: lease.epoch - 1 }, saying(lease, 2, `lost ${large}`)),
  ).rejects.toMatchObject({ code: "lease_lost" });
  expect(rows(path)).toEqual(before);
  expect(await store.journal.append(lease, saying(lease, 2, large))).toEqual(saying(lease, 2, large));
  expect(await store.journal.append(lease, saying(lease, 2, large))).toEqual(saying(lease, 2, large));
});

test.each([undefined, "key"])(
  "E1: verify() of SQLite finds that a large value was edited or removed (auditKey %s)",
  async (auditKey) => {
    const path = await newPath();
    const store = await openStore(path, auditKey === undefined ? {} : { auditKey });
    const { runId } = await speak(store);
    expect(await store.events.verify(runId)).toMatchObject({ ok: true });
    const connection = connect(path);
    connection.exec("UPDATE content_pieces SET data = 'edited'");
    expect(await store.events.verify(runId)).toMatchObject({ ok: false, seq: 2 });
    connection.exec("DELETE FROM content_pieces; DELETE FROM contents");
    expect(await store.events.verify(runId)).toMatchObject({ ok: false, seq: 2 });
    await expect(all(store.journal.read(runId))).rejects.toMatchObject({ code: "store_corrupt" });
  },
);

test("E1: verify() of SQLite finds that a reference was changed to another content", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const { runId } = await speak(store);
  const other = await ownRun(store, "other");
  await store.journal.append(other, saying(other, 1, `another ${large}`));
  const connection = connect(path);
  const [lied] = connection.prepare("SELECT refs FROM commits ORDER BY id DESC LIMIT 1").all();
  connection.prepare("UPDATE commits SET refs = ? WHERE number = 2").run(String(lied?.["refs"]));
  expect(await store.events.verify(runId)).toMatchObject({ ok: false, seq: 2 });
});

test("V5: retention removes large values from the SQLite file, and the hash chain still verifies", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await speak(store);
  await callTool(store, await ownRun(store, "other"), "kept ".repeat(2_000));
  const erases = [{ taskId: rootTask, agentId }];
  await store.journal.append(lease, { number: 4, at: 1, events: [runEnd(lease.runId, 4)], erases });
  await until(() => count(path, "runs WHERE erasing = 1") === 0, "the text was erased");
  expect(rows(path)).toEqual([1, 1, 2]);
  expect(await store.events.verify(lease.runId)).toMatchObject({ ok: true, events: 5 });
  expect(JSON.stringify(await all(store.journal.read(lease.runId)))).not.toContain(secret);
  await store.close();
  expect(readFileSync(path).includes(secret)).toBe(false);
});

test("V5: an erasure in SQLite keeps large values that another task of the run still has", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await ownRun(store);
  const child = { ...stepRecord(0, large), taskId: "t1" as typeof rootTask };
  await store.journal.append(lease, { number: 1, at: 1, steps: [child, stepRecord(1, large)] });
  await store.journal.append(lease, { number: 2, at: 1, steps: [{ ...child, address: "9" as never }] });
  await store.journal.append(lease, {
    number: 3,
    at: 1,
    erases: [{ taskId: child.taskId, agentId }],
  });
  await until(() => count(path, "runs WHERE erasing = 1") === 0, "the text was erased");
  expect(rows(path).at(-1)).toBe(1);
  const [, first] = await all(store.journal.read(lease.runId));
  expect(first?.steps?.map(({ outcome }) => outcome.kind === "ok" && outcome.value)).toEqual([null, large]);
  expect(await store.events.verify(lease.runId)).toMatchObject({ ok: true });
});

test("V2: a SQLite store that is opened again frees the contents that a dead process left without an owner", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await speak(store);
  await store.close();
  connect(path).exec("DELETE FROM commits WHERE refs IS NOT NULL");
  expect(count(path, "contents WHERE hash IS NULL")).toBe(1);
  await openStore(path);
  await until(() => count(path, "contents") === 0, "the content was freed");
  expect(lease.runId).toBe(runRecord("a").runId);
});

test("V4: SQLite stores a frozen value again after its content was deleted", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const value = Object.freeze({ text: large });
  const one = await ownRun(store, "one");
  await store.journal.append(one, { number: 1, at: 1, steps: [stepRecord(0, value)] });
  await store.journal.delete(one.runId);
  expect(count(path, "contents")).toBe(0);
  const two = await ownRun(store, "two");
  await store.journal.append(two, { number: 1, at: 1, steps: [stepRecord(0, value)] });
  const [, stored] = await all(store.journal.read(two.runId));
  expect(stored?.steps).toEqual([stepRecord(0, value)]);
});

test("V4: SQLite stores a value that its caller changes between two commits as it was in each of them", async () => {
  const store = await openStore(await newPath());
  const lease = await ownRun(store);
  const inner = { text: large };
  const value = Object.freeze({ inner });
  await store.journal.append(lease, { number: 1, at: 1, steps: [stepRecord(0, value)] });
  inner.text = `changed ${large}`;
  await store.journal.append(lease, { number: 2, at: 1, steps: [stepRecord(1, value)] });
  const [, one, two] = await all(store.journal.read(lease.runId));
  expect(one?.steps).toEqual([stepRecord(0, { inner: { text: large } })]);
  expect(two?.steps).toEqual([stepRecord(1, { inner: { text: `changed ${large}` } })]);
});

test("SQLite reports a content without its pieces as missing and never reads it as an empty text", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const entry = { ...sessionEntry("a", null), message: assistantMessage(large) };
  await store.sessions.apply([{ type: "append", sessionId, agentId, entry, visibility: "visible" }]);
  connect(path).exec("DELETE FROM content_pieces");
  await expect(async () => store.sessions.read(sessionId)).rejects.toMatchObject({ code: "store_corrupt" });
});
