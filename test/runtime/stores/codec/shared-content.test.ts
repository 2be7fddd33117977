import { expect, test } from "vitest";
import {
  eventDraft,
  formatAgentId,
  formatRunId,
  formatSessionId,
  formatTaskId,
  Supervision,
  type Commit,
  type Event,
  type TaskRecord,
} from "../../../../src/kernel/index.ts";
import { decodeCommit, encodeCommit } from "../../../../src/runtime/stores/codec/commit-codec.ts";

const run = {
  runId: formatRunId("1"),
  agentId: formatAgentId({ name: "writer" }),
  sessionId: formatSessionId("1"),
};
const hash = (content: string | Uint8Array): string => `hash of ${content.length}`;
const text = "a long input, ".repeat(100);

function startOf(data: Partial<Event<"run_start">["data"]>, task: Partial<TaskRecord> = {}): Commit {
  const { runId, agentId, sessionId } = run;
  const supervision = Supervision.root(agentId, { ids: { next: () => "1" }, sessionId }).toJSON();
  const shared = { agentId, input: text, supervision, metadata: { from: "mail" } };
  const created = { taskId: formatTaskId(0), parentId: null, ...structuredClone(shared), ...task };
  return {
    number: 0,
    at: 9,
    events: [
      {
        seq: 0,
        runId,
        taskId: formatTaskId(0),
        agentId,
        parentId: null,
        at: 9,
        ...eventDraft("run_start", { sessionId, ...shared, ...data }),
      },
    ],
    tasks: [{ type: "create", task: created as TaskRecord }],
  };
}

test.each<[string, Commit, number]>([
  ["all of it", startOf({}), 1],
  ["all of it, and the event has more", startOf({ by: "ada" }), 1],
  ["the input, but other metadata", startOf({ metadata: {} }), 1],
  ["all but the input", startOf({ input: "another" }), 1],
  ["none of it, because it is another task", startOf({}, { taskId: formatTaskId(1) }), 2],
])(
  "the content of run_start is stored once and restored if the new task holds %s",
  (_what, commit, copies) => {
    expect(JSON.stringify(encodeCommit(commit, run, hash)).split(text).length - 1).toBe(copies);
    const frame = { ...run, number: 0, at: 9, nextEvent: 1 };
    expect(decodeCommit(structuredClone(encodeCommit(commit, run, hash)), frame, () => [])).toEqual(commit);
  },
);

test("decoding fails with a SyntaxError if run_start refers to a task that the commit does not create", () => {
  const { tasks: _tasks, ...rest } = encodeCommit(startOf({}), run, hash);
  const frame = { ...run, number: 0, at: 9, nextEvent: 1 };
  expect(() => decodeCommit(rest, frame, () => [])).toThrow(SyntaxError);
});
