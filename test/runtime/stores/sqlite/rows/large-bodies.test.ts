import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import {
  assistantMessage,
  eventDraft,
  messageText,
  type Commit,
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
  runRecord,
  stepRecord,
} from "../../../../../src/testing/store-fixtures.ts";
import { connect, count, newPath, openStore, until } from "../store-files.ts";

const secret = "größer als alles";
/** The text contains characters of two bytes, so that blob pieces end in the middle of a character. */
const large = `${secret} `.repeat(50_000);
const small = "small";

function saying(lease: Lease, number: number, text: string): Commit {
  const event = placed(lease.runId, number, eventDraft("message_end", { message: assistantMessage(text) }));
  return { number, at: 1, steps: [stepRecord(number, text)], events: [event] };
}

/** Appends three commits, of which the second is large. */
async function speak(store: Store): Promise<Lease> {
  const lease = await ownRun(store);
  for (const [index, text] of [small, large, small].entries())
    await store.journal.append(lease, saying(lease, index + 1, text));
  return lease;
}

test("V1: a commit over 64 KiB is stored outside its row and read back unchanged, in this store and in another", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const { runId } = await speak(store);
  const rows = connect(path).prepare("SELECT body FROM commits ORDER BY id").all();
  expect(rows.map(({ body }) => body === "")).toEqual([false, false, true, false]);
  expect(count(path, "blob_pieces")).toBeGreaterThan(1);
  for (const each of [store, await openStore(path)]) {
    const steps = (await all(each.journal.read(runId))).flatMap((commit) => commit.steps ?? []);
    expect(steps).toEqual([stepRecord(1, small), stepRecord(2, large), stepRecord(3, small)]);
    const [told] = await all(each.events.read(runId, 2));
    expect(told?.type === "message_end" && messageText(told.data.message)).toBe(large);
    expect(await each.events.verify(runId)).toMatchObject({ ok: true, events: 4 });
  }
});

test("J1: a run can start with a large commit, and a large commit that loses to a stored one leaves no blob", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const first: Commit = { number: 0, at: 1, steps: [stepRecord(0, large)] };
  await store.journal.create(runRecord("b"), first);
  expect((await all(store.journal.read(runRecord("b").runId)))[0]?.steps).toEqual(first.steps);
  const lease = await ownRun(store);
  await store.journal.append(lease, saying(lease, 1, small));
  const pieces = count(path, "blob_pieces");
  expect(await store.journal.append(lease, saying(lease, 1, large))).toEqual(saying(lease, 1, small));
  await expect(
    store.journal.append({ ...lease, epoch: lease.epoch - 1 }, saying(lease, 2, large)),
  ).rejects.toMatchObject({ code: "lease_lost" });
  expect(count(path, "blob_pieces")).toBe(pieces);
  expect(await store.journal.append(lease, saying(lease, 2, large))).toEqual(saying(lease, 2, large));
  expect(await store.journal.append(lease, saying(lease, 2, large))).toEqual(saying(lease, 2, large));
});

test("E1: verify() finds that the text of a large commit was edited or removed", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const { runId } = await speak(store);
  const connection = connect(path);
  connection.exec("UPDATE blob_pieces SET bytes = zeroblob(length(bytes)) WHERE id = 2");
  expect(await store.events.verify(runId)).toMatchObject({ ok: false, seq: 2 });
  connection.exec("DELETE FROM blob_pieces; DELETE FROM blobs");
  expect(await store.events.verify(runId)).toMatchObject({ ok: false, seq: 2 });
  await expect(all(store.journal.read(runId))).rejects.toMatchObject({ code: "store_corrupt" });
});

test("E1: retention removes the text of a large commit from the file, and the chain still verifies", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await speak(store);
  const erases = [{ taskId: rootTask, agentId }];
  await store.journal.append(lease, { number: 4, at: 1, events: [runEnd(lease.runId, 4)], erases });
  await until(() => count(path, "runs WHERE erasing = 1") === 0, "all text was erased");
  expect(count(path, "blob_pieces")).toBe(0);
  expect(await store.events.verify(lease.runId)).toMatchObject({ ok: true, events: 5 });
  expect(JSON.stringify(await all(store.journal.read(lease.runId)))).not.toContain(secret);
  await store.close();
  expect(readFileSync(path).includes(secret)).toBe(false);
});

test("V2: the text of a large commit survives blobs.delete() and is deleted with its run", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const { runId } = await speak(store);
  const blobId = await store.blobs.put(runId, new Uint8Array([1]));
  await store.blobs.delete(runId);
  expect(await store.blobs.get(runId, blobId)).toBeUndefined();
  expect((await all(store.journal.read(runId))).length).toBe(4);
  await store.journal.delete(runId);
  expect([count(path, "blobs"), count(path, "blob_pieces"), count(path, "commits")]).toEqual([0, 0, 0]);
});
