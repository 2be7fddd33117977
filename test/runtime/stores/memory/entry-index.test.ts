import { expect, test } from "vitest";
import {
  formatAgentId,
  formatRunId,
  formatTaskId,
  parseSessionId,
  batchEntryId,
  userMessage,
  type MessageBatch,
  type SessionChange,
} from "../../../../src/kernel/index.ts";
import { memoryStore, sha256 } from "../../../../src/runtime/index.ts";

const sessionId = parseSessionId("long");
const agentId = formatAgentId({ name: "clerk" });
const taskId = formatTaskId(0);
const messages = [userMessage("hello"), userMessage("again")];

/** Creates a conversation of `runs` runs. `reads` counts how often the store read the id stem of a message batch. */
async function talk(runs: number) {
  const { sessions } = memoryStore({ hash: sha256 });
  const reads = { count: 0 };
  let parentId: string | null = null;
  for (let number = 0; number < runs; number++) {
    const runId = formatRunId(`r${number}`);
    const stem = `${runId}/${taskId}`;
    const said: MessageBatch = {
      runId,
      taskId,
      at: number,
      parentId,
      from: 0,
      messages,
      get stem() {
        reads.count++;
        return stem;
      },
    };
    const say: SessionChange = { type: "say", sessionId, agentId, batch: said, visibility: "visible" };
    await sessions.apply([say]);
    parentId = batchEntryId({ ...said, stem }, 1);
  }
  return { sessions, reads };
}

test("the memory store appends messages at a cost that does not grow with the length of the conversation", async () => {
  const readsOf = async (runs: number): Promise<number> => (await talk(runs)).reads.count;
  const first = (await readsOf(100)) - (await readsOf(50));
  expect((await readsOf(550)) - (await readsOf(500))).toBe(first);
});

test("the memory store removes a run's messages at a cost that depends on the number of these messages only", async () => {
  const { sessions, reads } = await talk(500);
  reads.count = 0;
  await sessions.apply([{ type: "remove", sessionId, runId: formatRunId("r250") }]);
  expect(reads.count).toBeLessThan(10);
  expect(await sessions.read(sessionId)).toHaveLength(2 * 499);
});

test("the memory store appends removed messages again, and stores messages that are appended twice once", async () => {
  const { sessions } = await talk(3);
  const runId = formatRunId("r2");
  const said: MessageBatch = {
    runId,
    taskId,
    at: 9,
    parentId: "run_r1/t0/1",
    stem: "run_r2/t0",
    from: 0,
    messages,
  };
  const say: SessionChange = { type: "say", sessionId, agentId, batch: said, visibility: "visible" };
  await sessions.apply([say]);
  expect(await sessions.read(sessionId)).toHaveLength(6);
  await sessions.apply([{ type: "remove", sessionId, runId }]);
  expect(await sessions.read(sessionId)).toHaveLength(4);
  await sessions.apply([say, say]);
  const ids = (await sessions.read(sessionId)).map(({ entry }) => entry.id);
  expect(ids).toEqual([0, 1, 2].flatMap((run) => [`run_r${run}/t0/0`, `run_r${run}/t0/1`]));
});
