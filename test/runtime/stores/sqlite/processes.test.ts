import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import type { Delta, Event, RunId, Store } from "../../../../src/kernel/index.ts";
import { all, createRun, rootTask } from "../../../../src/testing/contracts/store-fixtures.ts";
import { newPath, openStore, until } from "./store-files.ts";
import { startProcess } from "./store-process.ts";

const claim = async (store: Store): Promise<RunId[]> =>
  (await store.leases.claim({ workerId: "here", limit: 100, now: 0 })).map(({ runId }) => runId);

async function setup(...names: string[]): Promise<{ path: string; store: Store; runs: RunId[] }> {
  const path = await newPath();
  const store = await openStore(path);
  await store.leases.enlist("here");
  const runs: RunId[] = [];
  for (const name of names) runs.push(await createRun(store, name));
  return { path, store, runs };
}

test("L2: the runs of a killed SQLite process can be claimed at once, and its lock file is removed", async () => {
  const { path, store, runs } = await setup("a", "b");
  const other = await startProcess(path, "claim", "there");
  expect(await other.line()).toBe(runs.join());
  expect(await claim(store)).toEqual([]);
  expect(readdirSync(`${path}-workers`).length).toBe(2);
  await other.kill();
  expect(await claim(store)).toEqual(runs);
  expect(readdirSync(`${path}-workers`).length).toBe(1);
});

test("L2: a stopped SQLite process keeps its runs and still owns them when it resumes", async () => {
  const { path, store, runs } = await setup("a");
  const other = await startProcess(path, "claim", "there");
  expect(await other.line()).toBe(runs.join());
  process.kill(other.pid, "SIGSTOP");
  for (let look = 0; look < 100; look++) expect(await claim(store)).toEqual([]);
  process.kill(other.pid, "SIGCONT");
  other.say("well?");
  expect(await other.line()).toBe("owned");
});

test("J3: a SQLite process whose run another worker seized gets lease_lost", async () => {
  const { path, store, runs } = await setup("a");
  const other = await startProcess(path, "claim", "there");
  await other.line();
  await store.leases.seize(runs[0] as RunId, "here");
  other.say("well?");
  expect(await other.line()).toBe("lease_lost");
});

test("a SQLite worker name cannot be enlisted twice at a time; after the first process dies, the second claims its runs", async () => {
  const { path, store, runs } = await setup("a");
  const other = await startProcess(path, "claim", "there");
  await other.line();
  await expect(store.leases.enlist("there")).rejects.toMatchObject({ code: "already_exists" });
  await other.kill();
  await store.leases.enlist("there");
  expect(await claim(store)).toEqual(runs);
});

test("onChange() on SQLite calls its listener when a process that owns runs is killed", async () => {
  const { path, store, runs } = await setup("a");
  const other = await startProcess(path, "claim", "there");
  await other.line();
  let told = 0;
  const stop = store.onChange(() => told++);
  await other.kill();
  const before = told;
  await until(() => told > before, "the listener was called");
  expect(await claim(store)).toEqual(runs);
  stop();
});

test("E2, E3: tail() in another SQLite process yields events, and the deltas of a message until the message is recorded", async () => {
  const { path, store } = await setup();
  const other = await startProcess(path, "stream", "a");
  const seen: (Event | Delta)[] = [];
  const tail = (async () => {
    for await (const each of store.events.tail("run_a" as RunId)) seen.push(each);
  })();
  await until(() => seen.length === 2, "the stored events were seen");
  other.say("write");
  await until(() => seen.length === 3, "the deltas were seen");
  expect(seen[2]).toMatchObject({ type: "message_update", taskId: rootTask, offset: 0, text: "Hello" });
  const late = store.events.tail("run_a" as RunId)[Symbol.asyncIterator]();
  for (let index = 0; index < 3; index++) expect((await late.next()).value).toEqual(seen[index]);
  await late.return?.();
  const stranger = await openStore(path);
  const elsewhere = stranger.events.tail("run_a" as RunId)[Symbol.asyncIterator]();
  for (let index = 0; index < 3; index++) expect((await elsewhere.next()).value).toEqual(seen[index]);
  await elsewhere.return?.();
  other.say("record");
  expect(await other.line()).toBe("recorded");
  await tail;
  expect(seen.slice(3).map(({ type }) => type)).toEqual(["message_end", "run_end"]);
  expect((await all(store.events.tail("run_a" as RunId))).map(({ type }) => type)).toEqual([
    "run_start",
    "message_start",
    "message_end",
    "run_end",
  ]);
});

test("onChange() on SQLite calls its listener when another store writes to the same file", async () => {
  const { path, store } = await setup();
  let told = 0;
  const stop = store.onChange(() => told++);
  const elsewhere = await openStore(path);
  const runId = await createRun(elsewhere);
  await until(() => told > 0, "the listener was called for the run");
  const before = told;
  await elsewhere.mailbox.put({ id: "m", runId, from: "x", at: 1, body: { type: "pause" } });
  await until(() => told > before, "the listener was called for the mail");
  expect(await claim(store)).toEqual([runId]);
  stop();
});
