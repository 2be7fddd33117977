import { expect, test } from "vitest";
import {
  eventDraft,
  formatAgentId,
  formatRunId,
  formatSessionId,
  formatTaskId,
  rootTaskId,
  stepAt,
  Supervision,
  type Commit,
  type Event,
  type StepRecord,
  type TaskRecord,
} from "../../../../src/kernel/index.ts";
import { decodeCommit, encodeCommit } from "../../../../src/runtime/stores/codec/commit-codec.ts";
import { CallPlaces } from "../../../../src/runtime/stores/codec/shared-content.ts";

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

test("decoding a commit fails with a SyntaxError if run_start refers to a task that the commit does not create", () => {
  const { tasks: _tasks, ...rest } = encodeCommit(startOf({}), run, hash);
  const frame = { ...run, number: 0, at: 9, nextEvent: 1 };
  expect(() => decodeCommit(rest, frame, () => [])).toThrow(SyntaxError);
});

/** A model call whose message asks for `count` tool calls. `reads` counts how often the id of a call is read. */
function replyWith(count: number, idOf: (index: number) => string) {
  let reads = 0;
  const content = Array.from({ length: count }, (_, index) => ({
    type: "tool_call",
    get callId(): string {
      reads++;
      return idOf(index);
    },
    toolName: "count",
    input: { index },
  }));
  const value = { message: { role: "assistant", content } };
  const outcome = { kind: "ok", value } as unknown as StepRecord["outcome"];
  const step: StepRecord = {
    taskId: rootTaskId,
    address: stepAt("", 0),
    kind: "llm",
    name: "main",
    digest: "",
    outcome,
  };
  return { step, reads: () => reads };
}

test.each([
  ["different ids", (index: number) => `call-${index}`],
  ["one id for all calls", () => "call"],
])("CallPlaces finds each of 20,000 calls with %s and reads each call once", (_what, idOf) => {
  const { step, reads } = replyWith(20_000, idOf);
  const places = new CallPlaces();
  for (let index = 0; index < 20_000; index++)
    expect(places.find(step, { callId: idOf(index), toolName: "count", input: { index } })).toBe(index);
  expect(reads()).toBe(20_000);
});

test.each([2, 17])("CallPlaces finds no call that a message of %i calls does not hold", (count) => {
  const { step } = replyWith(count, (index) => `call-${index}`);
  const places = new CallPlaces();
  expect(places.find(step, { callId: "call-1", toolName: "count", input: { index: 1 } })).toBe(1);
  expect(places.find(step, { callId: "call-1", toolName: "count", input: { index: 2 } })).toBe(-1);
  expect(places.find(step, { callId: "call-1", toolName: "other", input: { index: 1 } })).toBe(-1);
});
