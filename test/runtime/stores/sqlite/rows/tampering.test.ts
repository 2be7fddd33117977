import { expect, test } from "vitest";
import type { RunId, Store } from "../../../../../src/kernel/index.ts";
import {
  all,
  ownRun,
  runEnd,
  runRecord,
  sessionId,
  stepRecord,
  turnStart,
} from "../../../../../src/testing/contracts/store-fixtures.ts";
import { sha256 } from "../../../../../src/runtime/process/sha256.ts";
import { Chain, type SealedEntries } from "../../../../../src/runtime/stores/codec/chain.ts";
import type { CommitRow } from "../../../../../src/runtime/stores/codec/commit-row.ts";
import { entryEdits, writeEntries } from "../../edited-entries.ts";
import { connect, newPath, openStore } from "../store-files.ts";

interface Setup {
  readonly path: string;
  readonly store: Store;
  readonly runId: RunId;
}

/** Appends commits 0 to 6. The seqs of their events are: 0; 1 and 2; none; 3; 4 and 5; none; 6. */
async function setup(auditKey?: string): Promise<Setup> {
  const path = await newPath();
  const store = await openStore(path, auditKey === undefined ? {} : { auditKey });
  const lease = await ownRun(store);
  const { runId } = lease;
  const turns = (...seqs: number[]) => seqs.map((seq) => turnStart(runId, seq));
  await store.journal.append(lease, { number: 1, at: 1, events: turns(1, 2) });
  await store.journal.append(lease, { number: 2, at: 2, steps: [stepRecord(0, "x")] });
  await store.journal.append(lease, { number: 3, at: 3, events: turns(3) });
  await store.journal.append(lease, { number: 4, at: 4, events: turns(4, 5) });
  await store.journal.append(lease, { number: 5, at: 5, steps: [stepRecord(1, "y")] });
  await store.journal.append(lease, { number: 6, at: 6, events: [runEnd(runId, 6)] });
  return { path, store, runId };
}

async function headOf({ store, runId }: Setup): Promise<string> {
  const verdict = await store.events.verify(runId);
  if (!verdict.ok) throw new Error(verdict.problem);
  return verdict.head;
}

const edits: readonly (readonly [name: string, sql: string, seq: number])[] = [
  [
    "an edited event",
    `UPDATE commits SET body = replace(body, '"turn_start",3', '"turn_start",9') WHERE number = 3`,
    3,
  ],
  ["an edited time", "UPDATE commits SET at = at + 1 WHERE number = 3", 3],
  ["a removed event", `UPDATE commits SET body = '{"steps":[]}' WHERE number = 3`, 3],
  ["a removed commit", "DELETE FROM commits WHERE number = 3", 3],
  ["a removed commit without events", "DELETE FROM commits WHERE number = 2", 3],
  [
    "two commits that were swapped",
    `UPDATE commits SET body = (SELECT body FROM commits AS other WHERE other.number = 7 - commits.number)
     WHERE number IN (3, 4)`,
    3,
  ],
  [
    "two events that were swapped",
    `UPDATE commits SET body = json_set(body, '$.events[1][1]', 5, '$.events[2][1]', 4) WHERE number = 4`,
    4,
  ],
  ["an edited record", `UPDATE commits SET body = replace(body, '"x"', '"z"') WHERE number = 2`, 3],
  ["a changed link", "UPDATE commits SET link = 'made up' WHERE number = 4", 4],
  ["a body that is not JSON", "UPDATE commits SET body = '{' WHERE number = 4", 4],
  [
    "a reference to a step that does not exist",
    `UPDATE commits SET body = '{"events":[["message_end",{},[0]]]}' WHERE number = 3`,
    3,
  ],
  ["another agent of the run", "UPDATE runs SET agent_id = 'other'", 0],
  ["another session of the run", "UPDATE runs SET session_id = 'session_other'", 0],
  ["a user of a run that had none", "UPDATE runs SET user_id = 'mallory'", 0],
  ["a tenant of a run that had none", "UPDATE runs SET tenant = '=other'", 0],
];

test.each(edits)("E1: verify() of SQLite finds %s", async (_name, sql, seq) => {
  const { path, store, runId } = await setup();
  connect(path).exec(sql);
  expect(await store.events.verify(runId)).toMatchObject({ ok: false, seq });
});

test.each([
  ["another user", "UPDATE runs SET user_id = 'mallory'"],
  ["no user", "UPDATE runs SET user_id = NULL"],
  ["another tenant", "UPDATE runs SET tenant = '=other'"],
  ["no tenant", "UPDATE runs SET tenant = '-'"],
  ["user and tenant in each other's place", "UPDATE runs SET user_id = 'acme', tenant = '=ann'"],
])("E1: verify() of SQLite finds %s of a run with a user and a tenant", async (_name, sql) => {
  const path = await newPath();
  const store = await openStore(path);
  const record = { ...runRecord(), userId: "ann", tenantId: "acme" };
  await store.journal.create(record, { number: 0, at: 0, events: [turnStart(record.runId, 0)] });
  expect(await store.events.verify(record.runId)).toMatchObject({ ok: true, events: 1 });
  connect(path).exec(sql);
  expect(await store.events.verify(record.runId)).toEqual({
    ok: false,
    seq: 0,
    problem:
      "commit 0 does not match the chain: it, or the agent, session, user or tenant of the run, was changed",
  });
});

test("E1: verify() of SQLite finds a truncated log only against a head that is kept elsewhere", async () => {
  const it = await setup();
  const head = await headOf(it);
  connect(it.path).exec("DELETE FROM commits WHERE number >= 4");
  expect(await it.store.events.verify(it.runId)).toMatchObject({ ok: true, events: 4 });
  expect(await it.store.events.verify(it.runId, head)).toMatchObject({ ok: false, seq: 4 });
});

test("E1: verify() of SQLite with a key finds a chain that was computed again with another key", async () => {
  const [honest, forged] = await Promise.all([setup("secret"), setup("guess")]);
  const rows = connect(forged.path).prepare("SELECT number, link FROM commits").all();
  const change = connect(honest.path).prepare("UPDATE commits SET link = ? WHERE number = ?");
  for (const { number, link } of rows) change.run(link ?? null, number ?? null);
  expect(await honest.store.events.verify(honest.runId)).toMatchObject({ ok: false, seq: 0 });
});

test("E1: verify() of SQLite reports that a chain is keyed, and succeeds only with its key", async () => {
  const { path, store, runId } = await setup("secret");
  expect(await store.events.verify(runId)).toMatchObject({ ok: true, keyed: true, events: 7 });
  const other = await openStore(path, { auditKey: "another" });
  expect(await other.events.verify(runId)).toMatchObject({ ok: false, seq: 0 });
  const unkeyed = await openStore(path);
  expect(await unkeyed.events.verify(runId)).toMatchObject({ ok: false, seq: 0 });
});

test("E1: an earlier head that is forged into a SQLite commit as its seal does not hide an edit of that commit", async () => {
  const path = await newPath();
  const store = await openStore(path, { auditKey: "secret" });
  const lease = await ownRun(store);
  const { runId } = lease;
  const early = await headOf({ path, store, runId });
  await store.journal.append(lease, { number: 1, at: 1, events: [turnStart(runId, 1)] });
  const head = await headOf({ path, store, runId });
  connect(path)
    .prepare("UPDATE commits SET body = replace(body, 'hello', 'pay Mallory'), seal = ? WHERE number = 0")
    .run(early);
  expect(await store.events.verify(runId, head)).toMatchObject({ ok: false, seq: 0 });
});

test("E1: verify() of SQLite finds an edit that is disguised as an erasure, even without a key", async () => {
  const { path, store, runId } = await setup();
  const connection = connect(path);
  const [before, row] = connection
    .prepare(
      "SELECT id, number, at, next_event AS nextEvent, link, body, refs, seal FROM commits WHERE number IN (2, 3)",
    )
    .all() as unknown as CommitRow[];
  if (before === undefined || row === undefined) throw new Error("expected commit rows are missing");
  const body = row.body.replace('"turn_start",3', '"turn_start",9');
  const seal = new Chain(sha256, undefined).seal(before.link, { ...row, body });
  connection.prepare("UPDATE commits SET body = ?, seal = ? WHERE number = 3").run(body, seal);
  expect(await store.events.verify(runId)).toMatchObject({ ok: false, seq: 3 });
});

test("reading the journal from SQLite fails with store_corrupt at a commit that is missing or unreadable", async () => {
  const { path, store, runId } = await setup();
  connect(path).exec("UPDATE commits SET body = '{' WHERE number = 4");
  await expect(all(store.journal.read(runId))).rejects.toMatchObject({ code: "store_corrupt" });
  expect((await all(store.journal.read(runId, 5))).length).toBe(2);
  connect(path).exec("DELETE FROM commits WHERE number = 5");
  await expect(all(store.journal.read(runId, 5))).rejects.toMatchObject({ code: "store_corrupt" });
});

test.each(entryEdits)(
  "E1: verify() of SQLite finds a session entry with %s, and names it",
  async (_name, sql, entry) => {
    const path = await newPath();
    const store = await openStore(path);
    const runId = await writeEntries(store);
    expect(await store.events.verify(runId)).toMatchObject({ ok: true });
    connect(path).exec(sql);
    const verdict = await store.events.verify(runId);
    expect(verdict).toMatchObject({ ok: false, problem: expect.stringContaining(entry) as string });
  },
);

test("E1: verify() of SQLite finds a session entry that was added in the name of another run", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const runId = await writeEntries(store);
  const connection = connect(path);
  connection.exec(`CREATE TEMP TABLE added AS SELECT * FROM entries WHERE number = 2;
    UPDATE added SET id = id + 100, number = 7, run_id = 'run_b'; INSERT INTO entries SELECT * FROM added`);
  expect(await store.events.verify(runId)).toMatchObject({
    ok: false,
    problem: expect.stringContaining("run_a/7") as string,
  });
});

test("E1: verify() of SQLite finds an edited session entry with a new seal that was made without the key", async () => {
  const path = await newPath();
  const store = await openStore(path, { auditKey: "secret" });
  const runId = await writeEntries(store);
  expect(await store.events.verify(runId)).toMatchObject({ ok: true, keyed: true });
  const connection = connect(path);
  connection.exec("UPDATE entries SET body = replace(body, 'Oslo', 'Rome')");
  const row = connection
    .prepare(
      "SELECT stem, number, count, run_id AS runId, task, type, body, refs FROM entries WHERE number = 0",
    )
    .get() as unknown as SealedEntries;
  const seal = new Chain(sha256, undefined).entrySeal(sessionId, row);
  connection.prepare("UPDATE entries SET seal = ? WHERE number = 0").run(seal);
  expect(await store.events.verify(runId)).toMatchObject({ ok: false });
});
