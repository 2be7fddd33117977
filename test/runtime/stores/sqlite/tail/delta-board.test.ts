import { expect, test } from "vitest";
import {
  eventDraft,
  formatTaskId,
  type Delta,
  type Event,
  type Lease,
} from "../../../../../src/kernel/index.ts";
import { all, ownRun, placed, runEnd } from "../../../../../src/testing/contracts/store-fixtures.ts";
import { count, newPath, openStore, until } from "../store-files.ts";

const [ann, bob] = [formatTaskId(1), formatTaskId(2)];

function text({ runId }: Lease, taskId: Delta["taskId"], offset: number, piece: string): Delta {
  return {
    type: "message_update",
    runId,
    taskId,
    messageSeq: 1,
    attempt: 1,
    offset,
    kind: "text",
    text: piece,
  };
}

function messageEnd({ runId }: Lease, seq: number, taskId: Delta["taskId"]): Event {
  const message = { role: "assistant", content: [] } as const;
  return { ...placed(runId, seq, eventDraft("message_end", { message })), taskId };
}

test("E2: an event that records the message of one task leaves the deltas of other messages and calls in SQLite", async () => {
  const path = await newPath();
  const [store, elsewhere] = [await openStore(path), await openStore(path)];
  const lease = await ownRun(store);
  const { runId } = lease;
  store.events.putDelta(lease, text(lease, ann, 0, "from ann"));
  store.events.putDelta(lease, text(lease, bob, 0, "from "));
  store.events.putDelta(lease, { type: "tool_execution_update", runId, taskId: ann, callId: "c", update: 1 });
  store.events.putDelta(lease, text(lease, bob, 5, "bob"));
  await until(() => count(path, "deltas") === 3, "the table has one row for each message or call");
  await store.journal.append(lease, { number: 1, at: 1, events: [messageEnd(lease, 1, ann)] });
  expect(count(path, "deltas")).toBe(2);
  for (const { events } of [store, elsewhere]) {
    const seen: (Event | Delta)[] = [];
    for await (const each of events.tail(runId)) {
      seen.push(each);
      const told = seen.filter((delta) => delta.type === "message_update" && delta.taskId === bob);
      const whole = told.map((delta) => ("text" in delta ? delta.text : "")).join("");
      if (whole === "from bob" && seen.some(({ type }) => type === "tool_execution_update")) break;
    }
    expect(seen.filter(({ taskId }) => taskId === ann).map(({ type }) => type)).toEqual([
      "message_end",
      "tool_execution_update",
    ]);
  }
  const result = { output: { type: "text", text: "x" }, isError: false } as const;
  const draft = eventDraft("tool_execution_end", { callId: "c", toolName: "t", result, durationMs: 1 });
  await store.journal.append(lease, {
    number: 2,
    at: 2,
    events: [{ ...placed(runId, 2, draft), taskId: ann }, messageEnd(lease, 3, bob), runEnd(runId, 4)],
  });
  expect(count(path, "deltas")).toBe(0);
  const types = (await all(elsewhere.events.tail(runId))).map(({ type }) => type);
  expect(types).toEqual(["run_start", "message_end", "tool_execution_end", "message_end", "run_end"]);
});

test("E2: the deltas of a message that is recorded quickly are never written to the SQLite table", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await ownRun(store);
  store.events.putDelta(lease, text(lease, ann, 0, "quick"));
  await store.journal.append(lease, { number: 1, at: 1, events: [messageEnd(lease, 1, ann)] });
  const late = store.events.tail(lease.runId)[Symbol.asyncIterator]();
  await late.next();
  await late.next();
  store.events.putDelta(lease, text(lease, bob, 0, "next"));
  expect((await late.next()).value).toMatchObject({ text: "next" });
  await until(() => count(path, "deltas") === 1, "the next delta was in the table");
  await late.return?.();
});

test("E2: the SQLite deltas of a former owner are dropped when another worker seizes the run", async () => {
  const path = await newPath();
  const store = await openStore(path);
  const lease = await ownRun(store);
  store.events.putDelta(lease, text(lease, ann, 0, "half"));
  await until(() => count(path, "deltas") === 1, "the delta was in the table");
  await store.leases.seize(lease.runId, "w2");
  expect(count(path, "deltas")).toBe(0);
  store.events.putDelta(lease, text(lease, ann, 4, "ghost"));
  const tail = store.events.tail(lease.runId)[Symbol.asyncIterator]();
  expect((await tail.next()).value).toMatchObject({ type: "run_start" });
  const next = tail.next();
  await store.journal.delete(lease.runId);
  expect((await next).done).toBe(true);
});
