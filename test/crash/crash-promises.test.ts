import { describe, expect, test } from "vitest";
import {
  eventDraft,
  formatAgentId,
  formatRunId,
  formatTaskId,
  type Event,
  type EventDraft,
  type ExecutionBudget,
} from "../../src/kernel/index.ts";
import type { RunTrace, ServedCall } from "../../src/testing/index.ts";
import { checkCase, type CaseTrace, type PromiseOptions } from "../../src/testing/crash-promises.ts";

const runId = formatRunId("a");
const taskId = formatTaskId(0);
const agentId = formatAgentId({ name: "a" });
const nothing = { tokens: 0, nanoUsd: 0, turns: 0 };
const options: PromiseOptions = { branches: 1, ignore: [], mayExhaust: false };

function log(...drafts: readonly EventDraft[]): readonly Event[] {
  return drafts.map((draft, seq) => ({ ...draft, seq, runId, taskId, agentId, parentId: null, at: seq }));
}

const usage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
};
const turn = (number: number): EventDraft => eventDraft("turn_start", { turn: number });
const recover = eventDraft("run_recover", { epoch: 2 });
const end = eventDraft("run_end", { status: "completed", usage, costUsd: 0, turns: 0 });
const startCall = (callId: string): EventDraft =>
  eventDraft("tool_execution_start", { callId, toolName: "t", input: null });

function run(changes: Partial<RunTrace> = {}): RunTrace {
  return {
    runId,
    events: log(turn(1), turn(2), end),
    chain: { ok: true, events: 3, head: "", keyed: false, sinceHead: null },
    receipts: new Set(),
    output: "out",
    status: "completed",
    money: {
      caps: { tokens: 100, nanoUsd: null, turns: null },
      spent: { ...nothing, tokens: 10 },
      lost: nothing,
      reserved: nothing,
      totalled: { ...nothing, tokens: 10 },
    },
    seats: { cap: 2, most: 2, left: [] },
    open: [],
    ...changes,
  };
}

function call(key: string, caller: string, tokens = 0): ServedCall {
  return { name: "t", key, body: null, caller, receipt: `receipt of ${key}`, billed: { tokens, usd: 0 } };
}

function trace(changes: Partial<CaseTrace> = {}): CaseTrace {
  const lives = [{ caller: "life 1", receipts: new Set<string>() }];
  return { lives, calls: [call("one", "life 1"), call("two", "life 1")], runs: [run()], ...changes };
}

/** A case with two worker processes. `recorded` has the answers that were stored when the first process died. */
function twoLives(recorded: readonly string[], ...calls: readonly ServedCall[]): CaseTrace {
  const receipts = new Set(recorded.map((key) => `receipt of ${key}`));
  return trace({
    lives: [
      { caller: "life 1", receipts },
      { caller: "life 2", receipts },
    ],
    calls,
  });
}

function promisesBroken(actual: CaseTrace, changes: Partial<PromiseOptions> = {}): readonly string[] {
  return checkCase(actual, trace(), { ...options, ...changes }).map(({ promise }) => promise);
}

const withRun = (changes: Partial<RunTrace>): CaseTrace => trace({ runs: [run(changes)] });
const withMoney = (changes: Partial<RunTrace["money"]>): CaseTrace => {
  const money = { ...run().money, ...changes };
  return withRun({ money: { ...money, totalled: changes.totalled ?? money.spent } });
};

describe("checkCase(): calls", () => {
  const [one, two, oneAgain, twoAgain] = [
    call("one", "life 1"),
    call("two", "life 1"),
    call("one", "life 2"),
    call("two", "life 2"),
  ];

  test("J6: checkCase() allows one repeated call per branch if it was in flight", () => {
    expect(promisesBroken(twoLives(["one"], one, two, twoAgain))).toEqual([]);
    expect(promisesBroken(twoLives([], one, two, oneAgain, twoAgain))).toEqual(["in_flight_only"]);
    expect(promisesBroken(twoLives([], one, two, oneAgain, twoAgain), { branches: 2 })).toEqual([]);
  });

  test("J1: checkCase() reports a repeated call whose answer was recorded", () => {
    expect(promisesBroken(twoLives(["one"], one, oneAgain, twoAgain))).toEqual(["recorded_once"]);
  });

  test("checkCase() reports a call that is made twice by one process, missing, or not made without a crash", () => {
    expect(promisesBroken(trace({ calls: [one, two, one] }))).toEqual(["in_flight_only"]);
    expect(promisesBroken(trace({ calls: [one] }))).toEqual(["same_calls"]);
    expect(promisesBroken(trace({ calls: [one, two, call("three", "life 1")] }))).toEqual(["same_calls"]);
  });
});

describe("checkCase(): money", () => {
  const lost = { ...nothing, tokens: 30 };

  test("B3: checkCase() requires the spending of the run without a crash plus the amount that the crash lost", () => {
    expect(promisesBroken(withMoney({ spent: { ...nothing, tokens: 40 }, lost }))).toEqual([]);
    expect(promisesBroken(withMoney({ spent: { ...nothing, tokens: 39 }, lost }))).toEqual(["spent"]);
    expect(promisesBroken(withMoney({ reserved: lost }))).toEqual(["spent"]);
  });

  test("U1: checkCase() reports a run that adds another amount to the totals than it spent", () => {
    const [less, twice] = [nothing, { ...nothing, tokens: 20 }];
    expect(promisesBroken(withMoney({ totalled: less }))).toEqual(["totals"]);
    expect(promisesBroken(withMoney({ totalled: twice }))).toEqual(["totals"]);
  });

  test("B3: checkCase() reports a run_end whose spend differs from the ledger", () => {
    const events = log(turn(1), turn(2), { ...end, data: { ...end.data, turns: 7 } });
    expect(promisesBroken(withRun({ events }))).toEqual(["spent"]);
  });

  test("B1: checkCase() reports a bill above the spend and a spend above the cap, also if the budget may be exhausted", () => {
    const billed = [call("one", "life 1", 11), call("two", "life 1")];
    expect(promisesBroken(trace({ calls: billed }), { mayExhaust: true })).toEqual(["billed"]);
    const over = withMoney({ spent: { ...nothing, tokens: 101 } });
    expect(promisesBroken(over, { mayExhaust: true })).toEqual(["billed"]);
  });
});

describe("checkCase(): events", () => {
  const withLog = (...drafts: readonly EventDraft[]): CaseTrace => withRun({ events: log(...drafts) });

  test("E4: checkCase() accepts additional recovery events", () => {
    expect(promisesBroken(withLog(turn(1), recover, turn(2), end))).toEqual([]);
  });

  test.each([
    ["lost", [turn(1), end]],
    ["doubled", [turn(1), turn(1), turn(2), end]],
    ["out of order", [turn(2), turn(1), end]],
  ])("E4: checkCase() reports an event that is %s", (_, drafts) => {
    expect(promisesBroken(withLog(...drafts))).toEqual(["events"]);
  });

  test("checkCase() accepts any order of the calls of one batch, but not a call after a later event of its task", () => {
    const expected = trace({
      runs: [run({ events: log(turn(1), startCall("x"), startCall("y"), turn(2), end) })],
    });
    const broken = (...drafts: readonly EventDraft[]): number =>
      checkCase(withLog(...drafts), expected, options).length;
    expect(broken(turn(1), startCall("y"), startCall("x"), turn(2), end)).toBe(0);
    expect(broken(turn(1), startCall("y"), turn(2), startCall("x"), end)).toBe(1);
  });

  test("checkCase() recognizes children by their inputs if branches start them at the same time, in any order", () => {
    const child = (input: string): EventDraft[] => [
      eventDraft("task_start", { priority: 2, budget: {} as ExecutionBudget }),
      eventDraft("agent_start", { input, architecture: "react" }),
    ];
    // The root has the first task and the last event. Each child has two events.
    const events = (...inputs: readonly string[]): readonly Event[] =>
      log(turn(1), ...inputs.flatMap(child), end).map((event, at) =>
        event.type === "turn_start" || event.type === "run_end"
          ? event
          : { ...event, taskId: formatTaskId(Math.ceil(at / 2)), parentId: taskId },
      );
    const expected = trace({ runs: [run({ events: events("one", "two") })] });
    const broken = (...inputs: readonly string[]): number =>
      checkCase(withRun({ events: events(...inputs) }), expected, { ...options, sideBySide: true }).length;
    expect(broken("two", "one")).toBe(0);
    expect(broken("two", "two")).toBe(2);
  });

  test("E1: checkCase() reports a gap in the events, a broken chain, a second run_end and a missing run_end", () => {
    const [first, ...rest] = log(turn(1), turn(2), end);
    const gap = [first, ...rest.map((event) => ({ ...event, seq: event.seq + 1 }))].filter(
      (each) => each !== undefined,
    );
    expect(promisesBroken(withRun({ events: gap }))).toEqual(["events"]);
    const chain = { ok: false, seq: 1, problem: "edited" } as const;
    expect(promisesBroken(withRun({ chain }))).toEqual(["events"]);
    expect(promisesBroken(withLog(turn(1), turn(2), end, end))).toContain("events");
    expect(promisesBroken(withLog(turn(1), turn(2)))).toContain("events");
  });
});

test("checkCase() reports another output, another status, a missing run and a task that has not ended", () => {
  expect(promisesBroken(withRun({ output: "other" }))).toEqual(["same_output"]);
  expect(promisesBroken(withRun({ status: "failed" }))).toEqual(["same_output"]);
  expect(promisesBroken(trace({ runs: [] }))).toEqual(["finished"]);
  expect(promisesBroken(withRun({ open: [taskId] }))).toEqual(["finished"]);
});

test("H1, H4: checkCase() reports seats above the cap and a seat that is still held at the end", () => {
  expect(promisesBroken(withRun({ seats: { cap: 2, most: 3, left: [] } }))).toEqual(["seats"]);
  expect(promisesBroken(withRun({ seats: { cap: 2, most: 2, left: [formatTaskId(1)] } }))).toEqual(["seats"]);
});
