import { expect, test } from "vitest";
import { rootTaskId, type Event, type TaskId } from "../../../src/kernel/index.ts";
import { RunFold } from "../../../src/surfaces/view/run-fold.ts";
import type { RunView } from "../../../src/surfaces/view/run-view.ts";
import { runCancelWords } from "../../../src/surfaces/view/cancel-words.ts";
import { eventWords } from "./event-words.ts";
import { doing } from "../../../src/surfaces/view/task-words.ts";

const child = "t1" as TaskId;

/** A run of a lead that hired a scout, and what happened to them then. */
function runOf(...then: readonly (readonly [taskId: TaskId, type: string, data: object])[]): RunView {
  const supervision = { spawnBudget: { maxAgents: 9 }, priority: 2 };
  const first = [
    [rootTaskId, "run_start", { agentId: "lead", sessionId: "ses_1", input: "Go.", supervision }],
    [rootTaskId, "spawn_start", { childTaskId: child, agentId: "scout", priority: 2 }],
  ] as const;
  const fold = new RunFold();
  for (const [seq, [taskId, type, data]] of [...first, ...then].entries()) {
    const [agentId, parentId] = taskId === child ? ["scout", rootTaskId] : ["lead", null];
    fold.add({ seq, at: seq, runId: "run_1", taskId, agentId, parentId, type, data } as unknown as Event);
  }
  return fold.view();
}

function cancelled(taskId: TaskId, reason: string): readonly [TaskId, string, object] {
  const failure = { code: "cancelled", message: reason, details: { reason, status: "cancelled" } };
  return [taskId, "task_end", { status: "cancelled", failure }];
}

function wordsOf(view: RunView): readonly (string | null)[] {
  const [lead, scout] = [view.tasks.get(rootTaskId)!, view.tasks.get(child)!];
  return [runCancelWords(view), doing(lead, view), doing(scout, view)];
}

test("the page says of every task of a cancelled run who cancelled it and why", () => {
  const order = [rootTaskId, "run_cancel", { reason: "too late", by: "ada" }] as const;
  const view = runOf(order, cancelled(child, "too late"), cancelled(rootTaskId, "too late; retried once"));
  const words = "cancelled by ada: too late";
  expect(wordsOf(view)).toEqual(["by ada: too late", words, words]);
});

test("the page names only the person if a cancel has no reason", () => {
  const order = [rootTaskId, "run_cancel", { reason: "cancelled", by: "person" }] as const;
  const view = runOf(order, cancelled(child, "cancelled"), cancelled(rootTaskId, "cancelled"));
  expect(wordsOf(view)).toEqual(["by you", "cancelled by you", "cancelled by you"]);
  const event = { type: order[1], taskId: rootTaskId, data: order[2] } as unknown as Event;
  expect(eventWords(event, view)).toBe("You cancelled the run");
});

test("the page names the manager that cancelled a task, or says that the manager has ended", () => {
  const [, , alone] = wordsOf(runOf(cancelled(child, "the hand-off timed out")));
  expect(alone).toBe("cancelled by lead: the hand-off timed out");
  const [, , left] = wordsOf(runOf(cancelled(child, "its parent has ended")));
  expect(left).toBe("cancelled because lead has ended");
});

test("the page names the person who cancelled a task, also at the tasks below it", () => {
  const order = [child, "task_cancel", { reason: "enough", by: "ada" }] as const;
  const view = runOf(order, cancelled(child, "enough"));
  expect(wordsOf(view)[2]).toBe("cancelled by ada: enough");
  expect(view.cancelled).toBeNull();
  const event = { type: order[1], taskId: child, data: order[2] } as unknown as Event;
  expect(eventWords(event, view)).toBe("ada cancelled this agent and its reports: enough");
});

test("the page no longer shows a run that was resumed after a cancel as cancelled", () => {
  const order = [rootTaskId, "run_cancel", { reason: "too late", by: "ada" }] as const;
  const ended = [rootTaskId, "run_end", { status: "cancelled" }] as const;
  const again = [
    [rootTaskId, "run_resume", { by: "ada" }],
    [rootTaskId, "turn_start", { turn: 2 }],
  ] as const;
  const view = runOf(order, cancelled(rootTaskId, "too late"), ended, ...again);
  expect([view.cancelled, view.tasks.get(rootTaskId)?.cancelled]).toEqual([null, null]);
});
