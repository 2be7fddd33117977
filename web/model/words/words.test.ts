import { expect, test } from "vitest";
import { BudgetExhaustedError, Fault, type Event, type TaskId } from "../../../src/kernel/index.ts";
import type { RunView, TaskView } from "../../../src/surfaces/view/run-view.ts";
import { stepAt, type StepView } from "../../../src/surfaces/view/step-log.ts";
import { eventWords } from "./event-words.ts";
import { failureWords, nextWords, shownCode } from "./failure-words.ts";
import { messageWords } from "./message-words.ts";
import { refusalWords } from "./refusal-words.ts";
import { stepName } from "./step-words.ts";
import { taskWord } from "../../../src/surfaces/view/status-words.ts";
import { endWord, lookOfTask, mayWrite } from "../status.ts";
import { threadOf } from "../thread.ts";
import { limitWords } from "../top-up-left.ts";
import { rowName } from "../usage-series.ts";
import { doing, doingInDetail, toolTitle } from "../../../src/surfaces/view/task-words.ts";

const names = new Map([
  ["t1", { agentId: "size" }],
  ["t2", { agentId: "release" }],
]);
const view = { tasks: names } as unknown as RunView;

function words(taskId: string, type: string, data: object): string {
  return eventWords({ type, data, taskId } as Event, view);
}

function call(toolName: string, input: object): string {
  return words("t1", "tool_execution_start", { toolName, input });
}

test("the page's words for an event about a seat name its agent only if another agent caused it", () => {
  const data = { taskId: "t1" as TaskId, yieldsTo: "t2" as TaskId };
  expect(words("t1", "seat_yield", data)).toBe("gives its seat to release");
  expect(words("t2", "seat_yield", data)).toBe("size gives its seat to release");
});

test("the page's words for an event say what a task waits for, without ids", () => {
  const suspend = (name: string): string => words("t1", "task_suspend", { waitsFor: [name] });
  expect(suspend("approval t4/2/0/S8oBb35dP150YUps")).toBe("waits for a person");
  expect(suspend("join t2")).toBe("waits for release");
  expect(suspend("join t1 t2")).toBe("waits for 2 reports");
  expect(suspend("signal go")).toBe("waits for the signal go");
  expect(words("t1", "task_wake", { by: "join t2" })).toBe("continues after release");
});

test("the page names an event without words of its own by its type, and shows no JSON", () => {
  expect(words("t1", "save_point", { sessionId: "ses_1", leafId: null })).toBe("saved its session");
  expect(words("t1", "journal_warning", { steps: 9 })).toBe("journal warning");
});

test("the page describes an input that was taken back in a sentence with the name of the person", () => {
  const data = { kind: "steer", inputId: "i1", by: "mara" };
  expect(words("t1", "input_withdraw", data)).toBe("mara took back an input before it was read");
});

test("the page describes retries, attempts and calls of a program in sentences", () => {
  const failure = { code: "internal", message: "the bank is closed" };
  expect(words("t1", "step_retry", { name: "charge", attempt: 1, delayMs: 300, failure })).toBe(
    "charge failed (the bank is closed), attempt 2 follows after 300 ms",
  );
  expect(words("t1", "retry_start", { attempt: 1, message: "HTTP 529" })).toBe(
    "calls the model again after an error: HTTP 529",
  );
  expect(words("t1", "attempt_start", { name: "report", number: 1 })).toBe("report starts");
  const metered = { model: { modelId: "sonnet-5" }, status: "ok", usage: { costUsd: 0.02 } };
  expect(words("t1", "metered_call", metered)).toBe("called sonnet-5 for $0.020");
});

test("the page shows hidden characters in names of steps, models and signals in events and in the timeline", () => {
  const hidden = "a\u202Eb\u001B[31m";
  const escaped = String.raw`a\u202eb\u001b[31m`;
  expect(words("t1", "step_end", { name: hidden, durationMs: 1 })).toBe(`${escaped}: 1 ms`);
  const usage = { costUsd: 0.02 };
  expect(words("t1", "metered_call", { model: { modelId: hidden }, status: "ok", usage })).toBe(
    `called ${escaped} for $0.020`,
  );
  expect(words("t1", "task_signal", { name: hidden, by: "ann" })).toBe(
    `receives the signal ${escaped} from ann`,
  );
  const step = { kind: "step", name: hidden, about: "", outcome: "ok" } as StepView;
  expect(stepName(step, null)).toBe(escaped);
});

test("the page says of an agent that gave up its seat and asked for a top-up that it waits for the person", () => {
  const request = { toolName: "top_up" };
  const asked = [{ taskId: "t1", request, decision: null }];
  const task = { taskId: "t1", status: "paused", questions: 1, yieldsTo: null, endedAt: null, waitsFor: [] };
  const asking = { ...view, asked } as unknown as RunView;
  expect(doing(task as never, asking)).toBe("waits for you: a top-up");
  expect([lookOfTask(task as never), taskWord(task as never)]).toEqual(["waits", "Waits for you"]);
  expect(lookOfTask({ ...task, questions: 0 } as never)).toBe("paused");
});

test("the page describes a call of a hand-off tool as hiring, and shows the value of a call with one argument", () => {
  expect(call("handoff_release", {})).toBe("hires release");
  expect(call("convert", { module: "src/module-0.ts" })).toBe("runs convert src/module-0.ts");
  const task = { status: "running", questions: 0, openCalls: 4, endedAt: null, waitsFor: [] };
  const lastCall = { kind: "tool", name: "handoff_release" };
  expect(doing({ ...task, lastCall } as never, view)).toBe("hires release and 3 more");
});

test("the page's words for the end of a call say that it failed or was denied, and show hidden characters", () => {
  const end = { toolName: "convert", durationMs: 2_000 };
  const failed = { ...end, result: { output: "", isError: true } };
  expect(words("t1", "tool_execution_end", failed)).toBe("runs convert: failed after 2.0 s");
  expect(words("t1", "tool_execution_end", { ...failed, status: "denied" })).toBe("runs convert: denied");
  expect(words("t1", "tool_execution_end", { ...end, result: { output: "", isError: false } })).toBe(
    "runs convert: 2.0 s",
  );
  const said = words("t1", "handoff", { target: "size", task: `\u202Eevil\u001B[31m\n${"x".repeat(9_000)}` });
  expect(said).toMatch(/^gives size a task: \\u202eevil\\u001b\[31m x+…$/u);
  expect(said.length).toBeLessThan(2_100);
});

function report(data: object): string {
  return messageWords({ type: "task_end", agentId: "size", parentId: "t2", data } as never, () => "release")
    .text;
}

test("the page's words for the message of a child that did not complete say first how it ended", () => {
  expect(report({ status: "completed", output: "1.1 MB." })).toBe("1.1 MB.");
  expect(report({ status: "cancelled", output: "I meas" })).toBe("was cancelled; it had written: I meas");
  const failure = { code: "budget_exhausted", message: "", details: { dimension: "tokens" } };
  expect(report({ status: "budget_exhausted", output: "", failure })).toBe("stopped at its tokens");
});

test("the page's words for a hand-off name the agent as the run does, and mark a step that was not made", () => {
  const hired = { tasks: [{ agentId: "reviewer/api" }] } as unknown as RunView;
  expect(toolTitle("handoff_reviewer_api", hired)).toBe("hires reviewer/api");
  expect(toolTitle("handoff_reviewer_api", null)).toBe("hires reviewer_api");
  const refused = { kind: "model", name: "p/large", about: "", outcome: "refused" } as StepView;
  expect(stepName(refused, null)).toBe("a call of large that was not made");
  expect(stepName({ ...refused, kind: "person", name: "ask_human" }, null)).toBe("waits for you: an answer");
});

test("the page's words for an agent give its place in the queue for a seat, and the turn of its model call", () => {
  const lost = { calls: 1 };
  const task = (taskId: string, priority: number, status: string): TaskView =>
    ({
      taskId,
      priority,
      status,
      createdAt: 1,
      endedAt: null,
      questions: 0,
      waitsFor: [],
      openCalls: 1,
      lastCall: { kind: "model", name: "p/large" },
      own: { calls: 3, lost },
    }) as unknown as TaskView;
  const [low, high, busy] = [task("t1", 1, "pending"), task("t2", 3, "pending"), task("t3", 2, "running")];
  const company = { tasks: [low, high, busy] } as unknown as RunView;
  expect(doingInDetail(high, company)).toBe("waits for a seat, first in line");
  expect(doingInDetail(low, company)).toBe("waits for a seat, 1 before it");
  expect(doingInDetail(busy, company)).toBe("calls large, turn 3");
});

test("the page's words for an exhausted budget say what the next call needed and what was left", () => {
  const limits = { dimension: "costUsd", limit: 0.21, used: 0.222924 } as const;
  const refused = { reserved: 0.035145, remaining: 0.022221, spent: 0.187779, unreported: 0 };
  expect(failureWords(new BudgetExhaustedError({ ...limits, refused }).toJSON())).toBe(
    "The next call needed at least $0.035, and $0.022 was left of $0.21. It was not started.",
  );
  const tight = { reserved: 0.0048, remaining: 0.00453, spent: 0.00047, unreported: 0 };
  expect(failureWords(new BudgetExhaustedError({ ...limits, limit: 0.005, refused: tight }).toJSON())).toBe(
    "The next call needed at least $0.0048, and $0.0045 was left of $0.005. It was not started.",
  );
  expect(failureWords(new BudgetExhaustedError({ ...limits, used: 0.215 }).toJSON())).toBe(
    "$0.215 of $0.21 is used. No further call starts.",
  );
  const turns = { dimension: "turns", limit: 1, used: 1 } as const;
  const none = { reserved: 1, remaining: 0, spent: 1, unreported: 0 };
  const stop = new BudgetExhaustedError({ ...turns, refused: none }).toJSON();
  expect(failureWords(stop)).toBe(
    "The next call needed at least 1 turn, and 0 turns were left of 1 turn. It was not started.",
  );
  expect(endWord("budget_exhausted", stop)).toBe("Stopped at its turns");
  expect(endWord("budget_exhausted", null)).toBe("Stopped at its budget");
  const ended = { status: "budget_exhausted", endedAt: 1, cancelled: null } as TaskView;
  expect(doing({ ...ended, stoppedAt: "turns" }, view)).toBe("stopped at its turns");
  expect(words("t1", "task_end", { status: "budget_exhausted", failure: stop })).toBe("stopped at its turns");
  expect(failureWords({ code: "budget_exhausted", message: "An older text." })).toBe("An older text.");
  expect(failureWords(new Fault("internal", "The call took 30 s.").toJSON())).toBe("The call took 30 s.");
  expect(failureWords({ code: "internal", message: "no \u202eesu" })).toBe(String.raw`no \u202eesu`);
});

test("the page names a step by what it is about, and by its answer only once it has ended", () => {
  const step = {
    kind: "model",
    name: "a/sonnet-5",
    about: "Two files differ.",
    edited: null,
    startSeq: 6,
    endSeq: 7,
  } as StepView;
  const shown = [6, 7].map((seq) => stepName(stepAt(step, seq) as StepView, null));
  expect(shown).toEqual(["sonnet-5", "Two files differ. · sonnet-5"]);
  const reading = { ...step, kind: "tool", name: "read", about: "package.json" } as const;
  expect(stepName(reading, null)).toBe("read package.json");
  expect(stepName({ ...reading, name: "handoff_size", about: "" }, null)).toBe("hires size");
});

test("the page's words for a run that cannot be shown say what happened and what to do, not the server's words", () => {
  const message = 'invalid path/runId: it must match pattern "^run_"';
  const wrong = refusalWords("release", { code: "invalid_argument", message });
  expect(`${wrong.what} ${wrong.todo}`).not.toContain("pattern");
  expect(wrong.what).toContain("Ids of runs start with run_");
  const absent = refusalWords("run_release", {
    code: "not_found",
    message: "run run_release does not exist",
  });
  expect(absent).toMatchObject({ title: "No run has this id", what: "The store has no run run_release." });
});

test("the page's words for a change of priority say who changed it, of whom, and from what to what", () => {
  const data = { taskId: "t1", from: 1, to: 4, by: "person" };
  expect(words("t0", "task_reprioritize", data)).toBe("You changed the priority of size from LOW to HIGH");
});

function lossWords(recovery: object | null): string {
  return eventWords(
    { seq: 5, type: "budget_lost", data: { costUsd: 0.5 } } as unknown as Event,
    { tasks: names, recoveries: recovery === null ? [] : [recovery] } as unknown as RunView,
  );
}

test("the page's words for an unreported call name a crash only if the worker died", () => {
  expect(lossWords({ seq: 4, lost: 1, isCrash: true })).toBe(
    "$0.500 for a call that got no answer because of the crash, charged in full",
  );
  expect(lossWords({ seq: 4, lost: 1, isCrash: false })).toBe(
    "$0.500 for a call that was cut when another worker took over, charged in full",
  );
  expect(lossWords(null)).toBe("$0.500 for a call that was stopped before it answered, charged in full");
});

test("the page's words for an error name no options of the code, and use no plural for an amount of one", () => {
  const message =
    "stage/sonnet-5 timed out: no further chunk of its answer arrived within 120000 ms (modelTimeouts.chunkMs)";
  expect(failureWords({ code: "model_timeout", message })).toBe(
    "stage/sonnet-5 stopped answering: no further part of its answer arrived within 2 min.",
  );
  const used = { dimension: "turns", used: 1, limit: 1 };
  expect(words("t1", "budget_exhausted", used)).toBe("has used 1 turn of 1 turn");
});

function recovered(data: object): string {
  return words("t0", "run_recover", { epoch: 2, ...data });
}

test("the page's words for a take-over name both workers if the log does", () => {
  expect(recovered({ owner: "worker-b", recoveries: 1, lost: { workerId: "worker-a" } })).toBe(
    "worker-a died, worker-b continues, epoch 2",
  );
  expect(recovered({ recoveries: 1 })).toBe("a worker died, another one continues, epoch 2");
  expect(recovered({ owner: "worker-b" })).toBe("worker-b continues, epoch 2");
});

test("the page's words for a run that stopped at its deadline give the used time and the last error", () => {
  const details = { status: "deadline_exceeded", dimension: "deadlineMs", limit: 2_000, used: 5_300 };
  const failure = { code: "cancelled", message: "deadline exceeded", details } as const;
  expect(failureWords(failure)).toBe("It used 5.3 s of 2.0 s of time. No further call starts.");
  expect(shownCode(failure)).toBe("deadline_exceeded");
  expect(nextWords(failure)).toMatch(/^Open the run to top it up/u);
  const message = "deadline exceeded; the last error was: stage/m failed with HTTP 503: no capacity";
  const older = { ...failure, message, details: { status: "deadline_exceeded" } };
  expect(failureWords(older)).toBe(
    "Its time is over. No further call starts. The last error was: stage/m failed with HTTP 503: no capacity",
  );
});

test("the page describes retries, fallbacks, pauses and signals in sentences and calls the person you", () => {
  expect(orderSaid("retry_end", { attempt: 1, success: true })).toBe("attempt 2 got an answer");
  expect(orderSaid("retry_end", { attempt: 2, success: false })).toBe("attempt 3 failed too");
  const to = { provider: "stage", modelId: "haiku" };
  const fallback = { from: { ...to, modelId: "sonnet" }, to, kind: "overloaded", message: "HTTP 529" };
  expect(orderSaid("model_fallback", fallback)).toBe("calls haiku, because sonnet failed: HTTP 529");
  expect(orderSaid("task_signal", { name: "go", by: "person" })).toBe("receives the signal go from you");
  expect(orderSaid("update_start", { name: "move", by: "ann" })).toBe("receives the update move from ann");
  expect(orderSaid("run_pause", { by: "person" })).toBe("You paused the run");
  const signal = { type: "task_signal", agentId: "lead", data: { name: "go", by: "person" } } as never;
  expect(messageWords(signal, () => "lead")).toMatchObject({ from: "You", text: "signal go" });
  expect(rowName("agent", { key: "reeve:gateway/claude" })).toBe("claude of the gateway");
});

test("the page does not show an agent that has ended, waits or is paused as writing, although its call has left a text", () => {
  expect([writes("running"), writes("pausing")]).toEqual([true, true]);
  expect([writes("waiting"), writes("paused"), writes("completed", 5), writes("cancelled", 5)]).toEqual([
    false,
    false,
    false,
    false,
  ]);
});

function orderSaid(type: string, data: object): string {
  return eventWords({ seq: 1, at: 1, taskId: "t0", type, data } as unknown as Event, noTasks);
}

function writes(status: TaskView["status"], endedAt: number | null = null): boolean {
  return mayWrite({ status, endedAt });
}

function toppedUp(add: object): Event {
  const data = { taskId: "t0", add, by: "person" };
  return { seq: 1, at: 1, type: "budget_top_up", data } as unknown as Event;
}

const noTasks = { tasks: new Map() } as unknown as RunView;

test("the page describes a top-up of time or tokens in the log and the conversation, and its form says what is used", () => {
  expect(eventWords(toppedUp({ deadlineMs: 300_000 }), noTasks)).toBe("You added 5 min of time");
  expect(eventWords(toppedUp({ maxTokens: 2_000 }), noTasks)).toBe("You added 2,000 tokens");
  expect(threadOf([toppedUp({ deadlineMs: 300_000 })], Infinity)).toMatchObject([
    { kind: "note", text: "You added 5 min of time to the budget" },
  ]);
  const task = {
    total: { calls: 1, tokens: 900, costUsd: 0 },
    budget: { maxTurns: 1, maxTokens: 500, deadlineMs: 500, maxCostUsd: null },
  } as unknown as TaskView;
  expect(limitWords(task, "maxTurns", null)).toBe("1 of 1 turn is used.");
  expect(limitWords(task, "maxTokens", null)).toBe("900 of 500 tokens are used.");
  expect(limitWords(task, "deadlineMs", { limit: 500, used: 5_300 })).toBe(
    "5.3 s of 500 ms of time is used.",
  );
  expect(limitWords(task, "deadlineMs", null)).toBe("The limit is 500 ms of time.");
});
