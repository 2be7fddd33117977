import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openStore } from "../../../src/entries/index.ts";
import { rootTaskId, type Event, type RunSummary } from "../../../src/kernel/index.ts";
import { CallList } from "../../../src/surfaces/view/model-calls.ts";
import { RunFold } from "../../../src/surfaces/view/run-fold.ts";
import { RunHistory } from "../../../src/surfaces/view/run-history.ts";
import type { RunView } from "../../../src/surfaces/view/run-view.ts";
import { likelyLossUsd } from "../../../src/surfaces/view/spend.ts";
import { stepAt, StepLog, type StepView } from "../../../src/surfaces/view/step-log.ts";
import { fileOfText } from "../../golden/file-text.ts";

interface RecordedRun {
  readonly summary: RunSummary;
  readonly events: readonly Event[];
}

const goldenFolder = join(import.meta.dirname, "../../golden");
const goldenName = readdirSync(goldenFolder).findLast((name) => name.endsWith(".sql")) as string;

/** The runs of the golden journal: children, preemption, approvals, forks, mail, failures and runs without an end. */
let runs: readonly RecordedRun[] = [];
let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-view-"));
  const path = join(folder, "golden.db");
  fileOfText(path, readFileSync(join(goldenFolder, goldenName), "utf8"));
  const store = await openStore(`sqlite:${path}`);
  const { runs: listed } = await store.journal.list({ limit: 500 });
  runs = await Promise.all(
    listed.map(async (summary) => {
      const events: Event[] = [];
      for await (const event of store.events.read(summary.runId)) events.push(event);
      return { summary, events };
    }),
  );
  await store.close();
});
afterAll(() => rm(folder, { recursive: true }));

function folded(events: readonly Event[]): RunView {
  const fold = new RunFold();
  for (const event of events) fold.add(event);
  return fold.view();
}

/** A view as plain values, for comparison. */
function plain({ tasks, money, asked, ...facts }: RunView): object {
  return { ...facts, tasks: [...tasks], money: [...money], asked: [...asked] };
}

function stepsOf(events: readonly Event[]): StepLog {
  const log = new StepLog();
  for (const event of events) log.add(event);
  return log;
}

describe("the view of a run", () => {
  test("the view of every recorded run has the same status and the same end as the run list", () => {
    expect(runs.length).toBeGreaterThan(5);
    for (const { summary, events } of runs) {
      const view = folded(events);
      expect(view).toMatchObject({
        runId: summary.runId,
        endedAt: summary.endedAt,
        agentId: summary.agentId,
      });
      if (summary.endedAt === null) continue;
      expect(view).toMatchObject({ status: summary.status, live: 0, active: 0, seats: 0, recorded: 0 });
      expect(view.recordedUsd).toBe(0);
    }
  });

  test("the root task's total of every ended run is the cost in its run_end, so that a parent includes its children", () => {
    for (const { events } of runs) {
      const end = events.findLast((event) => event.type === "run_end");
      if (end === undefined) continue;
      const { tasks, money } = folded(events);
      const total = tasks.get(rootTaskId)?.total;
      expect(total?.costUsd).toBe(end.data.costUsd);
      const own = [...tasks].reduce((sum, task) => sum + task.own.tokens, 0);
      expect(own).toBe(total?.tokens);
      const calls = [...money].reduce((sum, line) => sum + line.calls, 0);
      expect(calls + (total?.lost.calls ?? 0)).toBe(total?.calls);
    }
  });

  test("the seats taken in a view never exceed the cap at any event, and equal the tasks that have one", () => {
    for (const { events } of runs) {
      const fold = new RunFold();
      for (const event of events) {
        fold.add(event);
        const { seats, maxSeats, tasks } = fold.view();
        expect(seats).toBe([...tasks].filter(({ hasSeat }) => hasSeat).length);
        expect(seats).toBeLessThanOrEqual(maxSeats ?? Infinity);
      }
    }
  });

  test("adding an event that the view of a run already contains changes nothing", () => {
    for (const { events } of runs) {
      const fold = new RunFold();
      for (const event of [...events, ...events]) fold.add(event);
      expect(plain(fold.view())).toEqual(plain(folded(events)));
    }
  });
});

describe("the history of the view of a run", () => {
  test("at(seq) of a run's history returns what all events up to seq give, at every position of every recorded run", async () => {
    for (const { events } of runs) {
      const history = new RunHistory(async function* (from, to) {
        yield* events.slice(from, to + 1);
      });
      for (const event of events) history.add(event);
      for (const { seq } of events)
        expect(plain(await history.at(seq))).toEqual(plain(folded(events.slice(0, seq + 1))));
    }
  });

  test("at(seq) of a run's history reads fewer than 1,000 events of a long run", async () => {
    const events = longRun(4_500);
    const reads: number[] = [];
    const history = new RunHistory(async function* (from, to) {
      reads.push(to - from + 1);
      yield* events.slice(from, to + 1);
    });
    for (const event of events) history.add(event);
    for (const seq of [0, 998, 999, 1_000, 2_999, 3_998, 4_400])
      expect(plain(await history.at(seq))).toEqual(plain(folded(events.slice(0, seq + 1))));
    expect(reads).toEqual([1, 999, 1, 999, 401]);
  });

  test("a view that the history of a run has returned does not change when later events are added", async () => {
    const events = longRun(300);
    const history = new RunHistory(async function* () {});
    const views: { readonly view: RunView; readonly content: object }[] = [];
    for (const event of events) {
      history.add(event);
      const view = history.latest();
      views.push({ view, content: plain(view) });
    }
    for (const { view, content } of views) expect(plain(view)).toEqual(content);
  });

  test("add() of a run's history refuses a gap and names the expected event", () => {
    const [first, , third] = longRun(3) as [Event, Event, Event];
    const history = new RunHistory(async function* () {});
    history.add(first);
    expect(() => history.add(third)).toThrow("invalid event 2: expected event 1; read the log from there");
  });

  test("at() of a run's history refuses a number that is no event number", async () => {
    const history = new RunHistory(async function* () {});
    await expect(history.at(Number.NaN)).rejects.toThrow(
      "invalid event number NaN: expected an integer from 0",
    );
    await expect(history.at(-1)).rejects.toThrow("invalid event number -1");
  });
});

test("the view of a run counts the results of calls up to its event", () => {
  const events = longRun(6);
  const results = [2, 3, 4, 5, 6].map((count) => folded(events.slice(0, count)).results);
  expect(results).toEqual([0, 1, 1, 2, 2]);
});

describe("the steps in the view of a run", () => {
  test("every step of every ended run has an end in the view, and the model calls cost what the tasks spent", () => {
    for (const { summary, events } of runs) {
      if (summary.endedAt === null || events.some(({ type }) => type === "run_fork")) continue;
      const log = stepsOf(events);
      for (const { taskId, own } of folded(events).tasks) {
        const steps = log.of(taskId);
        expect(steps.filter(({ endSeq }) => endSeq === null)).toEqual([]);
        const tokens = steps.reduce((sum, step) => sum + step.tokens, 0);
        expect(tokens).toBe(own.tokens);
      }
    }
  });
});

describe("a step in the view of a run", () => {
  test("stepAt() shows a step of a run as it was at an earlier event, without later changes", () => {
    const [, done] = stepsOf(longRun(5)).of(rootTaskId) as [StepView, StepView];
    expect(done).toMatchObject({ startSeq: 3, endSeq: 4, outcome: "ok", costUsd: 0.25 });
    expect(stepAt(done, 2)).toBeNull();
    expect(stepAt(done, 3)).toMatchObject({ endSeq: null, endAt: null, outcome: null, costUsd: 0 });
    expect(stepAt(done, 4)).toBe(done);
  });

  test("open() lists the steps in progress, and inProgressAt() the steps in progress after an earlier event", () => {
    const log = stepsOf(longRun(6));
    expect([...log.open()]).toMatchObject([{ startSeq: 5, endSeq: null }]);
    const startsAt = (seq: number): readonly number[] =>
      [...log.inProgressAt(seq)].map(({ startSeq }) => startSeq);
    expect([0, 1, 2, 3, 4, 5].map(startsAt)).toEqual([[], [1], [], [3], [], [5]]);
  });

  test("the view shows the next attempt of a failed call as in flight after the delay of its retry", () => {
    const failed = { attempt: 1, maxAttempts: 3, delayMs: 10, kind: "overloaded", message: "busy" };
    const events = [...longRun(2), at(2, "retry_start", failed)];
    expect(stepsOf(events).of(rootTaskId)).toMatchObject([
      { startSeq: 1, endSeq: 2, outcome: "error" },
      { startSeq: 2, startAt: 12, endSeq: null, isAgain: true },
    ]);
    expect(folded(events).tasks.get(rootTaskId)).toMatchObject({ openCalls: 1 });
  });

  test("the view shows a call that was unreported and is tried again as in flight, and each attempt as a step", () => {
    const retry = { attempt: 1, maxAttempts: 3, delayMs: 10, kind: "timeout", message: "no answer" };
    const lost = { reservationId: "t0 1 1", attempt: 1, tokens: 50, costUsd: 0.5 };
    const events = [
      ...longRun(2),
      at(2, "budget_lost", lost),
      at(3, "retry_start", retry),
      at(4, "retry_end", { attempt: 1, success: false }),
      at(5, "retry_start", { ...retry, attempt: 2 }),
      at(6, "budget_lost", { ...lost, attempt: 3 }),
      at(7, "retry_end", { attempt: 2, success: false }),
      at(8, "retry_start", { ...retry, attempt: 3 }),
      at(9, "retry_end", { attempt: 3, success: true }),
      at(10, "message_end", { message: { role: "assistant", content: [] }, usage, durationMs: 1 }),
    ];
    const openCalls = events.map(
      (_, seq) => folded(events.slice(0, seq + 1)).tasks.get(rootTaskId)?.openCalls,
    );
    expect(openCalls).toEqual([0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0]);
    const attempts = [
      { startSeq: 1, callSeq: 1, endSeq: 2, outcome: "error", costUsd: 0.5 },
      { startSeq: 3, callSeq: 1, endSeq: 4, outcome: "error", costUsd: 0 },
      { startSeq: 5, callSeq: 1, endSeq: 6, outcome: "error", costUsd: 0.5 },
      { startSeq: 8, callSeq: 1, endSeq: 10, outcome: "ok", costUsd: 0.25 },
    ];
    for (let cut = 1; cut < events.length; cut++) {
      const log = new StepLog({ from: stepsOf(events.slice(0, cut)).stored(10) });
      for (const event of events) log.add(event);
      expect(log.of(rootTaskId)).toMatchObject(attempts);
    }
    const list = new CallList(10);
    for (const event of events) list.add(event);
    expect(list.calls).toMatchObject([{ seq: 1, retries: 3 }]);
  });

  test("attempts that middleware reports with the answer are steps in the view that start before the answer", () => {
    const retry = { attempt: 1, maxAttempts: 3, delayMs: 10, kind: "timeout", message: "no answer" };
    const events = [
      ...longRun(2),
      at(2, "budget_lost", { reservationId: "t0 1 1", attempt: 1, tokens: 50, costUsd: 0.5 }),
      { ...at(3, "retry_start", retry), at: 20 },
      { ...at(4, "retry_end", { attempt: 1, success: true }), at: 20 },
      {
        ...at(5, "message_end", { message: { role: "assistant", content: [] }, usage, durationMs: 5 }),
        at: 20,
      },
    ];
    expect(stepsOf(events).of(rootTaskId)).toMatchObject([
      { outcome: "error", endAt: 2 },
      { outcome: "ok", startAt: 15, endAt: 20 },
    ]);
    expect(folded(events).tasks.get(rootTaskId)).toMatchObject({ openCalls: 0 });
  });

  test("a model that replaces a failed model has a step of its own in the view, and a retried tool starts no model call", () => {
    const to = { provider: "stage", modelId: "haiku-5" };
    const fallback = { from: { ...to, modelId: "sonnet-5" }, to, kind: "overloaded", message: "busy" };
    const events = [...longRun(2), at(2, "model_fallback", fallback)];
    expect(stepsOf(events).of(rootTaskId)).toMatchObject([
      { endSeq: 2, outcome: "error" },
      { name: "haiku-5", startSeq: 2, endSeq: null },
    ]);
    expect(folded(events).tasks.get(rootTaskId)).toMatchObject({ openCalls: 1, model: "haiku-5" });
    const retry = { attempt: 1, maxAttempts: 3, delayMs: 10, kind: "timeout", message: "no answer" };
    const tool = [
      ...longRun(3),
      at(3, "tool_execution_start", { callId: "c1", toolName: "send", input: {} }),
      at(4, "retry_start", retry),
      at(5, "retry_end", { attempt: 1, success: false }),
    ];
    expect(stepsOf(tool).of(rootTaskId)).toMatchObject([{ kind: "model" }, { kind: "tool", endSeq: null }]);
    expect(folded(tool).tasks.get(rootTaskId)).toMatchObject({ openCalls: 1 });
  });

  test("the view shows a call that the budget did not cover as refused", () => {
    const events = [...longRun(2), at(2, "task_end", { status: "budget_exhausted" })];
    expect(stepsOf(events).of(rootTaskId)).toMatchObject([{ endSeq: 2, outcome: "refused", costUsd: 0 }]);
  });

  test("the view shows a task as paused from the moment at which it leaves its seat, not while it finishes its call", () => {
    const events = [
      ...longRun(2),
      at(2, "seat_yield", { taskId: rootTaskId, yieldsTo: "t2" }),
      at(3, "message_end", { message: { role: "assistant", content: [] }, usage }),
      at(4, "seat_pause", { taskId: rootTaskId }),
    ];
    expect(stepsOf(events).of(rootTaskId)).toMatchObject([
      { kind: "model", endSeq: 3 },
      { kind: "paused", name: "t2", startSeq: 4, endSeq: null },
    ]);
  });
});

describe("a recovery in the view of a run", () => {
  test("the view of a recovery counts the recorded calls of live tasks as replayed and their cost as not paid again", () => {
    const events = longRun(8);
    const recovered = at(8, "run_recover", { epoch: 2, recoveries: 1 });
    const { recoveries, recorded, recordedUsd } = folded([...events, recovered]);
    expect(recorded).toBeGreaterThan(0);
    expect(recoveries).toEqual([
      {
        seq: 8,
        at: 8,
        lastAt: 7,
        epoch: 2,
        owner: null,
        lostOwner: null,
        isCrash: true,
        replayed: recorded,
        savedUsd: recordedUsd,
        lost: 0,
      },
    ]);
  });

  test("the view shows a call in flight at a crash as lost when its worker died, and as in flight again after the recovery", () => {
    const events = [
      ...longRun(2),
      at(2, "run_recover", { epoch: 2, recoveries: 1 }),
      at(3, "budget_lost", { reservationId: "t0 1 1", attempt: 1, tokens: 50, costUsd: 0.5 }),
    ];
    expect(folded(events)).toMatchObject({ recoveries: [{ seq: 2, lost: 1 }] });
    expect(folded(events).tasks.get(rootTaskId)).toMatchObject({ openCalls: 1 });
    expect(stepsOf(events).of(rootTaskId)).toMatchObject([
      { startSeq: 1, endSeq: 3, endAt: 1, outcome: "lost", costUsd: 0.5, isAgain: false },
      { startSeq: 3, callSeq: 1, startAt: 3, endSeq: null, outcome: null, isAgain: true },
    ]);
    const answered = [
      ...events,
      at(4, "message_end", { message: { role: "assistant", content: [] }, usage }),
    ];
    expect(stepsOf(answered).of(rootTaskId)[1]).toMatchObject({ endSeq: 4, outcome: "ok", costUsd: 0.25 });
    expect(folded(answered).tasks.get(rootTaskId)).toMatchObject({ openCalls: 0 });
  });

  test("the view of a task that a limit stopped names the limit until the task continues", () => {
    const end = (details: object): Event =>
      at(2, "task_end", {
        status: "budget_exhausted",
        failure: { code: "budget_exhausted", message: "", details },
      });
    const stoppedAt = (...events: Event[]): string | null | undefined =>
      folded([...longRun(2), ...events]).tasks.get(rootTaskId)?.stoppedAt;
    expect(stoppedAt(end({ dimension: "turns" }))).toBe("turns");
    expect(stoppedAt(end({ dimension: "costUsd", cap: { name: "acme" } }))).toBe("cap");
    expect(stoppedAt(end({ dimension: "turns" }), at(3, "turn_start", { turn: 2 }))).toBe(null);
  });

  test("the view shows a call in flight at a release of the run as cut and made again, not as lost in a crash", () => {
    const events = [
      ...longRun(2),
      at(2, "run_recover", { epoch: 2 }),
      at(3, "budget_lost", { reservationId: "t0 1 1", attempt: 1, tokens: 50, costUsd: 0.5 }),
    ];
    expect(stepsOf(events).of(rootTaskId)).toMatchObject([
      { startSeq: 1, endSeq: 3, outcome: "cut", costUsd: 0.5 },
      { startSeq: 3, endSeq: null, isAgain: true },
    ]);
  });

  test("the view shows a time in which all agents wait, or the run has ended, as a wait", () => {
    const hour = 3_600_000;
    const later = (seq: number, type: string, data: object): Event => ({
      ...at(seq, type, data),
      at: seq + hour,
    });
    const waiting = [...longRun(1), at(1, "task_suspend", { waitsFor: ["approval a"] })];
    const woken = [...waiting, later(2, "task_wake", { by: "approval a" })];
    expect(folded(woken).waits).toEqual([{ seq: 2, lastAt: 1, at: 2 + hour }]);
    expect(folded([...longRun(2), later(2, "turn_start", { turn: 2 })]).waits).toEqual([]);
    const crashed = [...waiting, later(2, "run_recover", { epoch: 2, recoveries: 1 })];
    expect(folded(crashed).waits).toEqual([]);
    const stopped = [
      ...longRun(1),
      at(1, "task_end", { status: "failed" }),
      at(2, "run_end", { status: "failed" }),
    ];
    expect(folded([...stopped, later(3, "run_resume", { by: "ann" })]).waits).toMatchObject([{ seq: 3 }]);
  });

  test("a fork with another model repeats the call in flight with that model, and its view names the model that answers", () => {
    const changed = { provider: "stage", modelId: "haiku-5" };
    const fork = { origin: "run_0", at: 1, sessionId: "ses_2", inherited: usage, by: "ann", model: changed };
    const events = [...longRun(2), at(2, "run_fork", fork)];
    expect(folded(events).tasks.get(rootTaskId)?.model).toBe("haiku-5");
    expect(stepsOf(events).of(rootTaskId).at(-1)).toMatchObject({ name: "haiku-5", isAgain: true });
    const other = { provider: "stage", modelId: "sonnet-5" };
    const answer = { message: { role: "assistant", content: [] }, usage, model: other };
    const answered = [...events, at(3, "message_end", answer)];
    expect(folded(answered).tasks.get(rootTaskId)?.model).toBe("sonnet-5");
    expect(stepsOf(answered).of(rootTaskId).at(-1)).toMatchObject({ name: "sonnet-5", outcome: "ok" });
  });

  test("the view of a step shows arguments that a person changed from the decision on, also in a continued log", () => {
    const asked = {
      approvalId: "a1",
      kind: "tool_call",
      toolName: "send",
      callId: "c1",
      input: { to: "ada" },
    };
    const decision = { decision: "approved", input: { to: "bob" }, by: "ann" };
    const events = [
      ...longRun(1),
      at(1, "tool_execution_start", { callId: "c1", toolName: "send", input: { to: "ada" } }),
      at(2, "approval_request", asked),
      at(3, "approval_decision", { approvalId: "a1", decision }),
    ];
    const log = new StepLog({ from: stepsOf(events.slice(0, 3)).stored(10) });
    for (const event of events) log.add(event);
    const [call] = log.of(rootTaskId);
    expect([2, 3].map((seq) => stepAt(call as StepView, seq)?.about)).toEqual(["ada", "bob"]);
  });

  test("B3: the usage of an unreported call replaces its charge in the view of the task and its model; the run stays ended", () => {
    const lost = { tokens: 50, costUsd: 0.5 };
    const ended = [
      ...longRun(2),
      at(2, "run_recover", { epoch: 2, recoveries: 1 }),
      at(3, "budget_lost", { reservationId: "t0 1 1 3", attempt: 1, ...lost }),
      at(4, "message_end", { message: { role: "assistant", content: [] }, usage }),
      at(5, "run_end", { status: "completed" }),
    ];
    const before = folded(ended).tasks.get(rootTaskId)?.total;
    expect(before && likelyLossUsd(before)).toBe(0.25);
    const model = { provider: "acme", modelId: "m" };
    const data = { reservationId: "t0 1 1 3", usage, model, charged: lost, status: "completed", by: "user" };
    const view = folded([...ended, at(6, "usage_corrected", data)]);
    expect(view.tasks.get(rootTaskId)?.total).toEqual({
      calls: before?.calls,
      tokens: (before?.tokens ?? 0) - 50 + usage.inputTokens + usage.outputTokens,
      costUsd: 0.5,
      lost: { calls: 0, tokens: 0, costUsd: 0 },
    });
    expect([...view.money].map((line) => [line.model, line.calls])).toContainEqual(["acme/m", 1]);
    expect([view.status, view.endedAt]).toEqual(["completed", 5]);
  });

  test("the view shows a call of a task that is cancelled after a recovery as cut, not as lost in a crash", () => {
    const events = [
      ...longRun(1),
      at(1, "run_recover", { epoch: 2, recoveries: 1 }),
      at(2, "message_start", { role: "assistant", attempt: 1 }),
      at(3, "budget_lost", { reservationId: "t0 1 1", attempt: 1, tokens: 50, costUsd: 0.5 }),
      at(4, "task_end", { status: "cancelled" }),
    ];
    expect(folded(events)).toMatchObject({ recoveries: [{ lost: 0 }] });
    expect(stepsOf(events).of(rootTaskId)).toMatchObject([{ endSeq: 3, outcome: "cut", costUsd: 0.5 }]);
  });
});

describe("the view of a run that continues after its end", () => {
  test("the view shows a task that works after a top-up as live again, and so is its run", () => {
    const ended = [
      ...longRun(3),
      at(3, "task_end", { status: "budget_exhausted" }),
      at(4, "run_end", { status: "budget_exhausted" }),
    ];
    expect(folded(ended)).toMatchObject({ status: "budget_exhausted", live: 0, seats: 0 });
    const continued = folded([
      ...ended,
      at(5, "budget_top_up", { taskId: rootTaskId, add: { maxCostUsd: 1 }, by: "ann" }),
      at(6, "turn_start", { turn: 2 }),
    ]);
    expect(continued).toMatchObject({ status: "running", endedAt: null, live: 1, seats: 1 });
    expect(continued.tasks.get(rootTaskId)).toMatchObject({ status: "running", endedAt: null });
  });
});

const usage = {
  inputTokens: 10,
  outputTokens: 1,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: 0.25,
};

/** A run of one task that calls a model again and again and spawns a child every hundred events. */
function longRun(length: number): readonly Event[] {
  const start = at(0, "run_start", {
    agentId: "lead",
    sessionId: "s",
    input: "go",
    supervision: { spawnBudget: { maxAgents: null }, priority: 2 },
    metadata: {},
  });
  const others = Array.from({ length: length - 1 }, (_, index) => {
    const seq = index + 1;
    if (seq % 100 === 0)
      return at(seq, "spawn_start", { childTaskId: `t${seq / 100}`, agentId: "worker", priority: 2 });
    return seq % 2 === 1
      ? at(seq, "message_start", { role: "assistant", attempt: 1 })
      : at(seq, "message_end", { message: { role: "assistant", content: [] }, usage });
  });
  return [start, ...others];
}

function at(seq: number, type: string, data: object): Event {
  const ids = { runId: "run_1", taskId: rootTaskId, agentId: "lead", parentId: null };
  return { seq, at: seq, ...ids, type, data } as unknown as Event;
}
