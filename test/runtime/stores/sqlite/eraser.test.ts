import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { assistantMessage, eventDraft, type Lease, type Store } from "../../../../src/kernel/index.ts";
import {
  agentId,
  all,
  ownRun,
  placed,
  rootTask,
  runEnd,
  stepRecord,
} from "../../../../src/testing/store-fixtures.ts";
import { sha256 } from "../../../../src/runtime/sha256.ts";
import { Chain } from "../../../../src/runtime/stores/sqlite/chain.ts";
import type { CommitRow } from "../../../../src/runtime/stores/sqlite/commit-rows.ts";
import { connect, count, newPath, openStore, until } from "./store-files.ts";

const secret = "nobody is to know this";
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

const words = (path: string): boolean => readFileSync(path).includes(secret);

test("what retention erased leaves the file, overwritten, and the chain holds", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await speak(store, 300);
  const before = await store.events.verify(lease.runId);
  await end(store, lease, 301);
  await until(() => marked(path) === 0, "it is erased");
  expect(await store.events.verify(lease.runId)).toMatchObject({ ok: true, events: 302 });
  expect(before.ok).toBe(true);
  await store.close();
  expect(words(path)).toBe(false);
});

test("a process that died between the end and the erasure shows nothing, and the next one erases", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await speak(store, 50);
  await store.close();
  // As a process leaves it that dies with the commit.
  const connection = connect(path);
  connection.prepare("UPDATE runs SET erases = ?, erasing = 1").run(JSON.stringify(erases));
  connection.close();
  expect(words(path)).toBe(true);
  const next = await openStore(path);
  expect(JSON.stringify(await all(next.journal.read(lease.runId)))).not.toContain(secret);
  await until(() => marked(path) === 0, "it is erased");
  expect(await next.events.verify(lease.runId)).toMatchObject({ ok: true, events: 51 });
  await next.close();
  expect(words(path)).toBe(false);
});

test("a store without the key of the chain shows nothing and leaves the erasing to one that has it", async () => {
  const path = await newPath();
  const store = await openStore(path, { auditKey: "key" });
  const lease = await speak(store, 5);
  await store.close();
  const connection = connect(path);
  connection.prepare("UPDATE runs SET erases = ?, erasing = 1").run(JSON.stringify(erases));
  connection.close();
  const keyless = await openStore(path);
  expect(JSON.stringify(await all(keyless.events.read(lease.runId)))).not.toContain(secret);
  await keyless.close();
  expect(marked(path)).toBe(1);
  const keyed = await openStore(path, { auditKey: "key" });
  await until(() => marked(path) === 0, "it is erased");
  expect(await keyed.events.verify(lease.runId)).toMatchObject({ ok: true, keyed: true });
});

test("E1: a hash put in the place of erased words is found, and so is a row that is gone", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await speak(store, 5);
  await end(store, lease, 6);
  await until(() => marked(path) === 0, "it is erased");
  connect(path).prepare("UPDATE commits SET seal = 'forged' WHERE number = 3").run();
  expect(await store.events.verify(lease.runId)).toMatchObject({ ok: false, seq: 3 });
});

test("E1: what was edited before erased words and linked anew is found against a head kept elsewhere", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await ownRun(store);
  const { runId } = lease;
  await store.journal.append(lease, { number: 1, at: 1 });
  await store.journal.append(lease, { number: 2, at: 1, steps: [stepRecord(0, secret)] });
  await store.journal.append(lease, { number: 3, at: 1, events: [runEnd(runId, 1)], erases });
  await until(() => marked(path) === 0, "it is erased");
  const honest = await store.events.verify(runId);
  const connection = connect(path);
  const [first, edited, erased] = connection
    .prepare("SELECT id, number, at, next_event AS nextEvent, link, body, seal FROM commits ORDER BY id")
    .all() as unknown as CommitRow[];
  if (first === undefined || edited === undefined || erased === undefined)
    throw new Error("some are missing");
  const chain = new Chain(sha256, undefined);
  const link = chain.link(first.link, { ...edited, at: 5 });
  connection.prepare("UPDATE commits SET at = 5, link = ? WHERE number = 1").run(link);
  connection.prepare("UPDATE commits SET seal = ? WHERE number = 2").run(chain.seal(link, erased));
  expect([first.seal === null, edited.seal === null, erased.seal === null]).toEqual([false, true, false]);
  expect(await store.events.verify(runId)).toMatchObject({ ok: true });
  expect(await store.events.verify(runId, honest.ok ? honest.head : "")).toMatchObject({ ok: false });
});
