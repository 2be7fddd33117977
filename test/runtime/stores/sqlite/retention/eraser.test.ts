import { readFileSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  assistantMessage,
  eventDraft,
  formatTaskId,
  type Lease,
  type Store,
} from "../../../../../src/kernel/index.ts";
import {
  agentId,
  all,
  ownRun,
  placed,
  rootTask,
  runEnd,
  stepRecord,
} from "../../../../../src/testing/contracts/store-fixtures.ts";
import { sha256 } from "../../../../../src/runtime/process/sha256.ts";
import { Chain } from "../../../../../src/runtime/stores/codec/chain.ts";
import { Eraser } from "../../../../../src/runtime/stores/sqlite/retention/eraser.ts";
import { CommitRows } from "../../../../../src/runtime/stores/sqlite/rows/commit-rows.ts";
import type { CommitRow } from "../../../../../src/runtime/stores/codec/commit-row.ts";
import { connect, count, newPath, openStore, until } from "../store-files.ts";

const secret = "this must stay a secret";
const erases = [{ taskId: rootTask, agentId }];

async function speak(store: Store, commits: number): Promise<Lease> {
  const lease = await ownRun(store);
  for (let number = 1; number <= commits; number++) {
    const text = number % 10 === 0 ? `${secret} `.repeat(500) : secret;
    const event = placed(lease.runId, number, eventDraft("message_end", { message: assistantMessage(text) }));
    await store.journal.append(lease, { number, at: 1, steps: [stepRecord(number, text)], events: [event] });
  }
  return lease;
}

async function end(store: Store, { runId, ...lease }: Lease, number: number): Promise<void> {
  await store.journal.append({ runId, ...lease }, { number, at: 1, events: [runEnd(runId, number)], erases });
}

function marked(path: string): number {
  return count(path, "runs WHERE erasing = 1");
}

function rowsOf(connection: DatabaseSync): CommitRow[] {
  return connection
    .prepare(
      "SELECT id, number, at, next_event AS nextEvent, link, body, refs, seal FROM commits ORDER BY id",
    )
    .all() as unknown as CommitRow[];
}

const words = (path: string): boolean => readFileSync(path).includes(secret);

test("text that retention erased is overwritten in the SQLite file, and the hash chain still verifies", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await speak(store, 300);
  const before = await store.events.verify(lease.runId);
  await end(store, lease, 301);
  await until(() => marked(path) === 0, "the text was erased");
  expect(await store.events.verify(lease.runId)).toMatchObject({ ok: true, events: 302 });
  expect(before.ok).toBe(true);
  await store.close();
  expect(words(path)).toBe(false);
});

/** Ends the run and closes the store before the text is erased, like a process that dies right after the commit. */
async function endAndDie(store: Store, lease: Lease, number: number): Promise<void> {
  const erase = vi.spyOn(Eraser.prototype, "erase").mockResolvedValue();
  await end(store, lease, number);
  await store.close();
  erase.mockRestore();
}

test("no reader of SQLite sees text to be erased after a process died before erasing it, and the next process erases it", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await speak(store, 50);
  await endAndDie(store, lease, 51);
  expect(words(path)).toBe(true);
  const next = await openStore(path);
  expect(JSON.stringify(await all(next.journal.read(lease.runId)))).not.toContain(secret);
  await until(() => marked(path) === 0, "the text was erased");
  expect(await next.events.verify(lease.runId)).toMatchObject({ ok: true, events: 52 });
  await next.close();
  expect(words(path)).toBe(false);
});

test("a SQLite store without the chain's key hides text to be erased, and a store with the key erases it", async () => {
  const path = await newPath();
  const store = await openStore(path, { auditKey: "key" });
  const lease = await speak(store, 5);
  await endAndDie(store, lease, 6);
  const keyless = await openStore(path);
  expect(JSON.stringify(await all(keyless.events.read(lease.runId)))).not.toContain(secret);
  await keyless.close();
  expect(marked(path)).toBe(1);
  const keyed = await openStore(path, { auditKey: "key" });
  await until(() => marked(path) === 0, "the text was erased");
  expect(await keyed.events.verify(lease.runId)).toMatchObject({ ok: true, keyed: true });
});

test("E1: verify() of SQLite finds a mark of erasure that no commit ordered, and no text is erased because of this mark", async () => {
  const path = await newPath();
  const store = await openStore(path, { auditKey: "key" });
  const { runId } = await speak(store, 5);
  const whole = await store.events.verify(runId);
  await store.close();
  connect(path).prepare("UPDATE runs SET erases = ?, erasing = 1").run(JSON.stringify(erases));
  const next = await openStore(path, { auditKey: "key" });
  expect(await next.events.verify(runId, whole.ok ? whole.head : "")).toMatchObject({ ok: false, seq: 0 });
  const other = await ownRun(next, "b");
  await next.journal.append(other, { number: 1, at: 1, events: [runEnd(other.runId, 1)], erases });
  await until(() => marked(path) === 1, "the text that a commit ordered to erase was erased");
  expect(
    count(path, "commits WHERE seal IS NOT NULL AND run = (SELECT id FROM runs WHERE run_id = 'run_a')"),
  ).toBe(0);
  connect(path).prepare("UPDATE runs SET erases = NULL, erasing = NULL WHERE run_id = 'run_a'").run();
  expect(await next.events.verify(runId)).toEqual(whole);
});

test("E1: verify() of SQLite finds a mark of erasure that is unreadable or was removed", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await speak(store, 5);
  await end(store, lease, 6);
  await until(() => marked(path) === 0, "the text was erased");
  for (const mark of [null, "[]", "{", "[1]"]) {
    connect(path).prepare("UPDATE runs SET erases = ?").run(mark);
    expect(await store.events.verify(lease.runId)).toMatchObject({ ok: false, seq: 0 });
  }
});

test("E1: verify() of SQLite finds an erasure order forged into an erased commit, with a key or against a kept head", async () => {
  for (const auditKey of ["key", undefined]) {
    const path = await newPath();
    const store = await openStore(path, auditKey === undefined ? {} : { auditKey });
    const { runId, ...lease } = await speak(store, 2);
    const both = [...erases, { taskId: formatTaskId(1), agentId }];
    await end(store, { runId, ...lease }, 3);
    await until(() => marked(path) === 0, "the text was erased");
    const honest = await store.events.verify(runId);
    const connection = connect(path);
    const [before, row] = rowsOf(connection).slice(-2);
    if (before === undefined || row === undefined) throw new Error("expected commit rows are missing");
    const body = JSON.stringify({ ...(JSON.parse(row.body) as object), erases: both });
    const seal = new Chain(sha256, undefined).seal(before.link, { ...row, body });
    connection.prepare("UPDATE commits SET body = ?, seal = ? WHERE id = ?").run(body, seal, row.id);
    connection.prepare("UPDATE runs SET erases = ?").run(JSON.stringify(both));
    const alone = await store.events.verify(runId);
    expect(alone.ok).toBe(auditKey === undefined);
    expect(await store.events.verify(runId, honest.ok ? honest.head : "")).toMatchObject({ ok: false });
  }
});

test("E1: verify() of SQLite with a key finds an edit of the remaining text of an erased commit", async () => {
  const path = await newPath();
  const store = await openStore(path, { auditKey: "key" });
  const lease = await speak(store, 5);
  await end(store, lease, 6);
  await until(() => marked(path) === 0, "the text was erased");
  connect(path).exec("UPDATE commits SET body = replace(body, 'digest-3', 'digest-9') WHERE number = 3");
  expect(await store.events.verify(lease.runId)).toMatchObject({ ok: false, seq: 3 });
});

test("E1: verify() of SQLite succeeds while an erasure is ordered and carried out", async () => {
  const path = await newPath();
  const [store, reader] = [await openStore(path), await openStore(path)];
  const lease = await speak(store, 5);
  const pages = vi.spyOn(CommitRows.prototype, "pages");
  onTestFinished(() => pages.mockRestore());
  pages.mockImplementationOnce(async function* late(this: CommitRows, ...range) {
    await end(store, lease, 6);
    await until(() => marked(path) === 0, "the text was erased");
    yield* this.pages(...range);
  });
  expect(await reader.events.verify(lease.runId)).toMatchObject({ ok: true, events: 7 });
});

test("E1: verify() of SQLite finds a forged seal of an erased commit", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await speak(store, 5);
  await end(store, lease, 6);
  await until(() => marked(path) === 0, "the text was erased");
  connect(path).prepare("UPDATE commits SET seal = 'forged' WHERE number = 3").run();
  expect(await store.events.verify(lease.runId)).toMatchObject({ ok: false, seq: 3 });
});

test("E1: verify() of SQLite with a kept head finds an edit before erased text, even if the chain was computed again", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await ownRun(store);
  const { runId } = lease;
  await store.journal.append(lease, { number: 1, at: 1 });
  await store.journal.append(lease, { number: 2, at: 1, steps: [stepRecord(0, secret)] });
  await store.journal.append(lease, { number: 3, at: 1, events: [runEnd(runId, 1)], erases });
  await until(() => marked(path) === 0, "the text was erased");
  const honest = await store.events.verify(runId);
  const connection = connect(path);
  const [first, edited, erased] = rowsOf(connection);
  if (first === undefined || edited === undefined || erased === undefined)
    throw new Error("expected commit rows are missing");
  const chain = new Chain(sha256, undefined);
  const link = chain.link(first.link, { ...edited, at: 5 });
  connection.prepare("UPDATE commits SET at = 5, link = ? WHERE number = 1").run(link);
  connection.prepare("UPDATE commits SET seal = ? WHERE number = 2").run(chain.seal(link, erased));
  expect([first.seal === null, edited.seal === null, erased.seal === null]).toEqual([false, true, false]);
  expect(await store.events.verify(runId)).toMatchObject({ ok: true });
  expect(await store.events.verify(runId, honest.ok ? honest.head : "")).toMatchObject({ ok: false });
});
