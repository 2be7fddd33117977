import { expect, test } from "vitest";
import { rootTaskId, stepAt, type StepRecord } from "../../../../src/kernel/index.ts";
import { CallPlaces } from "../../../../src/runtime/stores/codec/call-places.ts";

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
