import { statSync } from "node:fs";
import { expect, test } from "vitest";
import {
  eventDraft,
  formatRunId,
  formatSessionId,
  Supervision,
  unlimitedBudget,
  userMessage,
  type Commit,
  type RunId,
} from "../../../../src/kernel/index.ts";
import {
  agentId,
  placed,
  rootTask,
  runRecord,
  stepRecord,
} from "../../../../src/testing/contracts/store-fixtures.ts";
import { newPath, openStore } from "./store-files.ts";

const runs = 2_000;

/** Builds the commits of a run that got an input in its own session, completed one step and waits for a signal. */
function commitsOf(runId: RunId, id: string): [Commit, Commit] {
  const sessionId = formatSessionId(id);
  const ids = { next: () => id };
  const supervision = Supervision.root(agentId, { ids, sessionId }).toJSON();
  const input = "please look into this when the signal comes";
  const budget = unlimitedBudget;
  const at = 1_700_000_000_000;
  const start = eventDraft("run_start", { agentId, sessionId, input, supervision, metadata: {} });
  const task = {
    taskId: rootTask,
    agentId,
    parentId: null,
    supervision,
    budget,
    input,
    messages: [],
    userId: null,
    metadata: {},
    streaming: false,
    onParentEnd: "wait",
    onPause: "suspend",
    tools: null,
  };
  const entry = {
    type: "message",
    id: runId,
    parentId: null,
    at,
    runId,
    taskId: rootTask,
    message: userMessage(input),
  };
  const first = {
    number: 0,
    at,
    events: [
      { ...placed(runId, 0, start), at },
      { ...placed(runId, 1, eventDraft("task_start", { priority: 2, budget })), at },
    ],
    tasks: [{ type: "create", task }],
    sessions: [{ type: "append", sessionId, agentId, entry, visibility: "pending" }],
  };
  const second = {
    number: 1,
    at: at + 5,
    steps: [{ ...stepRecord(0, "ready"), digest: "d".repeat(43) }],
    headcount: [{ type: "suspend", taskId: rootTask }],
  };
  return [first as unknown as Commit, second as unknown as Commit];
}

test("a suspended run takes less than 3 KB in the SQLite file, and claim() does not return it", async () => {
  const path = await newPath();
  const store = await openStore(path);
  await store.leases.enlist("w1");
  for (let done = 0; done < runs; done += 100) {
    await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const id = `8c6f1f0e-7a53-4f6b-9a2e-${String(done + index).padStart(12, "0")}`;
        const runId = formatRunId(id);
        const [first, second] = commitsOf(runId, id);
        await store.journal.create({ ...runRecord(id), sessionId: formatSessionId(id) }, first);
        const lease = await store.leases.seize(runId, "w1");
        if (lease === undefined) throw new Error("the run could not be seized");
        await store.journal.append(lease, second);
        await store.leases.release(lease, { kind: "suspended", wakeAt: null });
      }),
    );
  }
  expect(await store.leases.claim({ workerId: "w1", limit: 10, now: 1e15 })).toEqual([]);
  await store.close();
  expect(statSync(path).size / runs).toBeLessThan(3_072);
});
