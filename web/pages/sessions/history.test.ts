import { expect, test } from "vitest";
import type { Event, SessionEntry } from "../../../src/kernel/index.ts";
import { editsIn } from "../../model/thread.ts";
import { callingRuns, historyOf } from "./history.ts";

/** An entry with a call. */
function entry(id: string, runId: string, input: object): object {
  const call = { type: "tool_call", callId: "c1", toolName: "publish", input };
  return { id, at: 1, runId, type: "message", message: { role: "assistant", content: [call] } };
}

test("a conversation on the page shows the original and the changed arguments of a call that a person edited", () => {
  // A provider may use the id of a call again, also in another run.
  const entries = [
    entry("e1", "run_1", { tag: "latest" }),
    entry("e2", "run_1", { tag: "next" }),
    entry("e3", "run_2", { tag: "latest" }),
  ] as unknown as readonly SessionEntry[];
  const question = { approvalId: "a1", kind: "tool_call", callId: "c1", input: { tag: "latest" } };
  const decision = { decision: "approved", input: { tag: "beta" }, by: "ann" };
  const log = [
    { type: "approval_request", data: question },
    { type: "approval_request", data: { ...question, approvalId: "a2", input: { tag: "next" } } },
    { type: "approval_decision", data: { approvalId: "a1", decision } },
    { type: "approval_decision", data: { approvalId: "a2", decision: { decision: "approved" } } },
  ].map((event) => ({ ...event, runId: "run_1" }) as unknown as Event);
  expect([...callingRuns(entries)]).toEqual(["run_1", "run_2"]);
  const calls = historyOf(entries, editsIn(log)).flatMap((item) => (item.kind === "agent" ? item.calls : []));
  expect(calls.map(({ input, edit }) => ({ input, edit }))).toEqual([
    { input: { tag: "latest" }, edit: { input: { tag: "beta" }, by: "ann" } },
    { input: { tag: "next" }, edit: null },
    { input: { tag: "latest" }, edit: null },
  ]);
});
