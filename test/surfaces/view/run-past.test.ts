import { describe, expect, test } from "vitest";
import { formatTaskId, rootTaskId, type Event } from "../../../src/kernel/index.ts";
import { RunPast, type StoredPast } from "../../../src/surfaces/view/run-past.ts";
import { StepLog, type StepView } from "../../../src/surfaces/view/step-log.ts";

const tasks = [1, 2, 3].map((number) => formatTaskId(number));
const usage = {
  inputTokens: 10,
  outputTokens: 1,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
};

function at(seq: number, type: string, data: object, taskId: string): Event {
  return { seq, at: 10 * seq, runId: "run_1", taskId, agentId: "a", parentId: null, type, data } as never;
}

/**
 * Three tasks that call a model in turn; each call is longer than the calls of the other tasks. Between the calls a
 * worker dies, and a task gives up its seat, ends and continues.
 */
function events(count: number): readonly Event[] {
  return Array.from({ length: count }, (_each, seq) => {
    const taskId = tasks[Math.floor(seq / 2) % tasks.length] ?? rootTaskId;
    if (seq % 31 === 0) return at(seq, "run_recover", { epoch: seq, recoveries: 1 }, rootTaskId);
    if (seq % 31 === 1)
      return at(seq, "budget_lost", { reservationId: "r", attempt: 1, tokens: 5, costUsd: 0.1 }, taskId);
    if (seq % 23 === 5)
      return at(seq, "tool_execution_start", { callId: "c", toolName: "look", input: {} }, taskId);
    if (seq % 47 === 40) return at(seq, "task_end", { status: "budget_exhausted" }, taskId);
    if (seq % 17 === 2) return at(seq, "seat_yield", { taskId, yieldsTo: "t9" }, rootTaskId);
    if (seq % 17 === 7) return at(seq, "seat_pause", { taskId }, rootTaskId);
    if (seq % 17 === 12) return at(seq, "seat_grant", { taskId }, rootTaskId);
    return seq % 4 < 2
      ? at(seq, "message_start", { role: "assistant", attempt: 1 }, taskId)
      : at(
          seq,
          "message_end",
          { message: { role: "assistant", content: [] }, usage: { ...usage, costUsd: 0.25 }, durationMs: 20 },
          taskId,
        );
  });
}

function pastOf(log: readonly Event[], past = new RunPast()): RunPast {
  for (const event of log) past.add(event, { seats: event.seq % 5, isWaitOver: false });
  return past;
}

function throughJson(past: RunPast, mostSteps: number): StoredPast {
  return JSON.parse(JSON.stringify(past.stored(mostSteps))) as StoredPast;
}

function stepsOf({ steps }: RunPast): readonly StepView[] {
  return tasks.flatMap((taskId) => steps.of(taskId));
}

function byStart(steps: Iterable<StepView>): readonly StepView[] {
  return [...steps].toSorted((one, other) => one.startSeq - other.startSeq);
}

describe("the past of a run", () => {
  test("the past of a run that continues from any position, through JSON, equals that of all events", () => {
    const log = events(400);
    const whole = pastOf(log);
    expect(stepsOf(whole).some(({ outcome }) => outcome === "lost")).toBe(true);
    expect(stepsOf(whole).some(({ kind, name }) => kind === "paused" && name === "t9")).toBe(true);
    for (let cut = 0; cut < log.length; cut += 13) {
      const from = throughJson(pastOf(log.slice(0, cut)), Infinity);
      const continued = pastOf(log, new RunPast({ from }));
      expect(stepsOf(continued)).toEqual(stepsOf(whole));
      expect(continued.trace.stored).toEqual(whole.trace.stored);
      for (const seq of log.keys())
        for (const taskId of tasks)
          expect(continued.steps.replayedAt(seq, taskId)).toBe(whole.steps.replayedAt(seq, taskId));
    }
  });

  test("the past of a run that continues from the newest steps has every step that ended at or after its first event", () => {
    const log = events(400);
    const whole = pastOf(log);
    const from = throughJson(pastOf(log.slice(0, 200)), 10);
    expect(from.steps.steps.filter(({ endSeq }) => endSeq !== null)).toHaveLength(10);
    const { steps } = pastOf(log, new RunPast({ from }));
    expect(steps.first).toBeGreaterThan(100);
    const isKept = ({ endSeq }: StepView): boolean => endSeq === null || endSeq >= steps.first;
    for (const taskId of tasks)
      expect(steps.of(taskId).filter(isKept)).toEqual(whole.steps.of(taskId).filter(isKept));
  });
});

describe("a bounded log of the steps of a run", () => {
  test("a bounded log of steps keeps a minimum of ended steps and fewer than twice as many, and every step in progress", () => {
    const log = events(700);
    const [whole, bounded] = [new StepLog(), new StepLog({ most: 20 })];
    for (const event of log) {
      whole.add(event);
      bounded.add(event);
      const kept = tasks.flatMap((taskId) => bounded.of(taskId));
      const ended = kept.filter(({ endSeq }) => endSeq !== null).length;
      expect(ended).toBeLessThan(40);
      expect(bounded.first === 0 || ended >= 20).toBe(true);
    }
    expect(bounded.first).toBeGreaterThan(500);
    expect([...bounded.open()]).toEqual([...whole.open()]);
    for (let seq = bounded.first - 1; seq < log.length; seq++)
      expect(byStart(bounded.inProgressAt(seq))).toEqual(byStart(whole.inProgressAt(seq)));
  });
});
