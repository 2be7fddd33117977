import { expect, test } from "vitest";
import { rootTaskId, type Event, type TaskId } from "../../../../src/kernel/index.ts";
import type { RunView } from "../../../../src/surfaces/view/run-view.ts";
import type { StepView } from "../../../../src/surfaces/view/step-log.ts";
import { densityPaths, dockEnd } from "../dock/dock-paths.ts";
import { RunTrace } from "../../../../src/surfaces/view/run-trace.ts";
import { clearOfFolds, scaleAt, timeScale, type TimeScale } from "../../../model/time/time-scale.ts";
import { downTime } from "../../../base/format.ts";
import { tickLabels } from "./seams.tsx";
import { barPaths, barsOf } from "./lane-bars.ts";
import { topUpMarks } from "./top-ups.tsx";
import { areaPath, flagPlaces, heldPath } from "./track-paths.ts";

/** A run of 2,000 ms of work with a crash after the first 1,000 ms that took `downMs`. */
function scaleOf(downMs: number, width = 1_000): TimeScale {
  const crash = { seq: 10, lastAt: 1_000, at: 1_000 + downMs, isCrash: true };
  const view = { startedAt: 0, recoveries: [crash], forkedFrom: null } as unknown as RunView;
  return timeScale(view, 2_000 + downMs, width, 0.1);
}

function event(seq: number, at: number, type = "turn_start", data: object = {}): Event {
  return { seq, at, type, data, taskId: rootTaskId } as unknown as Event;
}

function step(change: Partial<StepView>): StepView {
  const times = { startSeq: 1, callSeq: 1, startAt: 500, endSeq: 20, endAt: 1_500, outcome: "ok" } as const;
  const what = { taskId: rootTaskId, kind: "tool", name: "write", id: "", about: "" } as const;
  return { ...what, ...times, isAgain: false, edited: null, tokens: 0, costUsd: 0, ...change };
}

const noFork = { forkedFrom: null };

/** What an event of these tests leaves behind. */
const after = { seats: 1, isWaitOver: false };

test("a model call that starts after the pause of its task has no bar in the pause of the page's timeline", () => {
  const scale = timeScale({ startedAt: 0, recoveries: [], forkedFrom: null }, 1_000, 1_000, 0.1);
  const call = step({ kind: "model", startAt: 100, startSeq: 1, endAt: 900, endSeq: 8 });
  const pause = step({ kind: "paused", startAt: 110, startSeq: 2, endAt: 600, endSeq: 5 });
  const [bar] = barsOf([call, pause], scale, { at: 1_000, seq: 9 }, noFork);
  expect(bar?.pieces.map(({ x, width }) => [x, width])).toEqual([
    [100, 10],
    [600, 300],
  ]);
});

test("a shortened time in the page's timeline has the same width and place whether the crash took no time or an hour", () => {
  for (const downMs of [0, 400, 3_600_000])
    expect(scaleOf(downMs).folds).toMatchObject([{ x: 450, width: 100 }]);
  expect(scaleOf(0).x({ at: 1_000, seq: 9 })).toBe(450);
  expect(scaleOf(0).x({ at: 1_000, seq: 10 })).toBe(550);
  expect(scaleOf(3_600_000).timeAt(1_000)).toBe(3_602_000);
});

test("bars and areas of the page's timeline end at a shortened time, and each part of a bar is at least 3 px wide", () => {
  const scale = scaleOf(400);
  const until = { at: 2_400, seq: 30 };
  const [bar] = barsOf([step({ endAt: 1_900 })], scale, until, noFork);
  expect(bar?.pieces).toEqual([
    { x: 225, width: 225 },
    { x: 550, width: 225 },
  ]);
  const [narrow] = barsOf([step({ startAt: 1_000, endAt: 1_400 })], scale, until, noFork);
  expect(narrow?.pieces).toEqual([
    { x: 447, width: 3 },
    { x: 550, width: 3 },
  ]);
  const area = areaPath([{ at: 0, seq: 0, value: 5 }], scale, {
    until,
    y: (value) => 10 - value,
    ground: 10,
  });
  expect(area).toBe("M0 10H0.0V5.0H450.0V10H550.0V5.0H1000.0V10z");
  expect(barPaths(barsOf([step({ startAt: 10, endAt: 11, endSeq: 2 })], scale, until, noFork))).toEqual([
    ["tool", "M4.5 8h3.0v12H4.5z"],
  ]);
});

test("an unreported call is red in the page's timeline before the crash, and the repeated call is hatched after it", () => {
  const until = { at: 2_400, seq: 30 };
  const lost = step({ kind: "model", endSeq: 11, endAt: 1_000, outcome: "lost", costUsd: 0.1 });
  const again = step({
    kind: "model",
    startSeq: 11,
    startAt: 1_400,
    endSeq: null,
    endAt: null,
    outcome: null,
  });
  expect(barsOf([lost, again], scaleOf(400), until, noFork)).toMatchObject([
    { kind: "lost", pieces: [{ x: 225, width: 225 }] },
    { kind: "open", pieces: [{ x: 550, width: 450 }] },
  ]);
  // The torn edge covers 3 px, so that a short one is wider than any other bar.
  const short = { ...lost, startAt: 999 };
  expect(barsOf([short], scaleOf(400), until, noFork)).toMatchObject([{ pieces: [{ x: 441, width: 9 }] }]);
});

test("a later crash has a place on the axis of the page's timeline, and is shortened only while no worker owns the run", () => {
  const scale = scaleOf(400);
  expect(scaleAt(scale, 9, false).folds).toEqual([]);
  expect(scaleAt(scale, 9, true).folds).toEqual(scale.folds);
  expect(scaleAt(scale, 10, false).folds).toEqual(scale.folds);
  expect(scaleAt(scale, 9, false).x({ at: 1_000, seq: 9 })).toBe(450);
});

test("the page's timeline continues while a run waits for a person, at most for as long again as the run worked", () => {
  const live = { startedAt: 0, at: 1_000, endedAt: null, questions: 1 };
  expect(dockEnd(live, 1_500)).toBe(1_500);
  expect(dockEnd(live, 60_000)).toBe(2_000);
  expect(dockEnd({ ...live, questions: 0 }, 1_500)).toBe(1_000);
  expect(dockEnd({ ...live, endedAt: 1_000 }, 1_500)).toBe(1_000);
});

test("a tool call has no bar in the page's timeline while it asks a person, nor a hand-off in the line of its manager", () => {
  const scale = timeScale({ startedAt: 0, recoveries: [], forkedFrom: null }, 1_000, 1_000, 0.1);
  const until = { at: 1_000, seq: 30 };
  const call = step({ startAt: 100, endSeq: null, endAt: null, outcome: null });
  const asks = { ...call, kind: "person", startSeq: 2, startAt: 200 } as const;
  expect(barsOf([call, asks], scale, until, noFork)).toMatchObject([
    { kind: "tool", pieces: [{ x: 100, width: 100 }] },
    { kind: "person", pieces: [{ x: 200, width: 800 }] },
  ]);
  expect(barPaths(barsOf([{ ...call, name: "handoff_build" }], scale, until, noFork))).toEqual([]);
});

test("the label of a crash is inside the plot of the page's timeline, and labels do not cover each other", () => {
  const [fold] = scaleOf(400).folds;
  const text = "a worker died; another one continued after 0.4 s: 13 steps free";
  for (const x of [0, 300, 900]) {
    const [place] = flagPlaces([{ fold: { ...fold!, x }, text }], 1_000);
    expect(place?.left).toBeGreaterThanOrEqual(0);
    expect((place?.left ?? 0) + (place?.width ?? 0)).toBeLessThanOrEqual(1_000);
  }
  const two = [0, 120].map((x) => ({ fold: { ...fold!, x }, text }));
  expect(flagPlaces(two, 1_000).map(({ line }) => line)).toEqual([0, 1]);
});

test("labels of the page's timeline keep clear of an early shortened time, and short runs have different times", () => {
  const early = timeScale(
    {
      startedAt: 0,
      recoveries: [{ seq: 1, lastAt: 5, at: 400, isCrash: true }],
      forkedFrom: null,
    } as unknown as RunView,
    1_400,
    1_000,
    0.1,
  );
  const [fold] = early.folds;
  expect(clearOfFolds(early.folds, 4, 104)).toBeGreaterThan(fold!.x + fold!.width);
  expect(tickLabels(early).every(({ x }) => x >= fold!.x + fold!.width)).toBe(true);
  expect(downTime(fold!.toAt - fold!.fromAt)).toBe("0.4 s");
  const short = timeScale({ startedAt: 0, recoveries: [], forkedFrom: null }, 46, 1_000, 0.1);
  const texts = tickLabels(short).map(({ text }) => text);
  expect(texts.slice(0, 3)).toEqual(["0 ms", "5 ms", "10 ms"]);
});

test("the page's timeline leaves out the time of a crash, and the bar of the last event is at its end", () => {
  const trace = new RunTrace();
  trace.add(event(0, 0), after);
  trace.add(event(1, 100), after);
  trace.add(event(2, 3_600_100, "run_recover", { epoch: 2, recoveries: 1 }), after);
  trace.add(event(3, 3_600_200), after);
  expect(trace.activeMs(3_600_200)).toBe(200);
  const crash = { seq: 2, lastAt: 100, at: 3_600_100, isCrash: true };
  const view = { startedAt: 0, recoveries: [crash], forkedFrom: null } as unknown as RunView;
  const scale = timeScale(view, 3_600_200, 1_000, 0.02);
  expect(scale.x({ at: 3_600_200, seq: 3 })).toBe(1_000);
  const { shown, later } = densityPaths(trace, scale, 1);
  const starts = `${shown}${later}`.match(/M[\d.]+/gu)?.map((text) => Number(text.slice(1))) ?? [];
  expect(starts[0]).toBe(0);
  expect(starts.at(-1)).toBeGreaterThan(980);
});

test("the reserved amount in the page's timeline rises while a call is in flight, and falls when the call ends", () => {
  const trace = new RunTrace();
  for (const [seq, at] of [0, 50, 100].entries()) trace.add(event(seq, at), after);
  trace.addEnded(step({ kind: "model", startAt: 10, endAt: 50, costUsd: 0.25 }));
  const heldAt = (ms: number, open: readonly StepView[] = []): number | undefined =>
    trace.held(open, 0.5).findLast(({ activeMs }) => activeMs <= ms)?.heldUsd;
  expect([heldAt(9), heldAt(10), heldAt(49), heldAt(50), heldAt(51)]).toEqual([0, 0.25, 0.25, 0, 0]);
  expect(heldAt(100, [step({ kind: "model", startAt: 60, endSeq: null, endAt: null })])).toBe(0.5);
});

test("the band of the reserved amount in the page's timeline ends where its call ends, also in a longer span of time", () => {
  const trace = new RunTrace();
  // A long run: its spans have 4,096 ms.
  for (const [seq, at] of [0, 5_000, 600_000].entries()) trace.add(event(seq, at), after);
  trace.addEnded(step({ kind: "model", startAt: 4_096, endAt: 6_000, costUsd: 0.25 }));
  expect(trace.spanMs).toBe(4_096);
  const scale = timeScale({ startedAt: 0, recoveries: [], forkedFrom: null }, 600_000, 600, 0.1);
  const path = heldPath(trace.held([], 0), () => 1, scale, { endMs: 600_000, y: (value) => 10 - 4 * value });
  expect(path).toBe("M4.1 6.0V5.0H6.0V6.0z");
});

test("the band of the reserved amount in the page's timeline continues after a shortened time, and is empty in it", () => {
  const held = [
    { activeMs: 900, heldUsd: 1 },
    { activeMs: 1_500, heldUsd: 0 },
  ];
  const path = heldPath(held, () => 0, scaleOf(400), { endMs: 2_000, y: (value) => 10 - value });
  expect(path).toBe("M405.0 10.0V9.0H450.0V10.0zM550.0 10.0V9.0H775.0V10.0z");
});

test("a top-up is a mark with its amount in the page's timeline, only in the line of its agent", () => {
  const trace = new RunTrace();
  const task = "t1" as TaskId;
  const topUp = (seq: number, at: number, add: object): void =>
    trace.add(event(seq, at, "budget_top_up", { taskId: task, add, by: "person" }), after);
  trace.add(event(0, 0), after);
  topUp(1, 100, { maxCostUsd: 1 });
  topUp(2, 500, { maxCostUsd: 0.5 });
  topUp(3, 510, { maxCostUsd: 0.25 });
  topUp(4, 800, { deadlineMs: 300_000 });
  topUp(5, 1_000, { maxTokens: 2_000 });
  const scale = timeScale({ startedAt: 0, recoveries: [], forkedFrom: null }, 1_000, 1_000, 0.1);
  const marks = topUpMarks(trace.topUpsOf(task), scale);
  expect(marks.map(({ x, text, title }) => ({ x, text, title }))).toEqual([
    { x: 100, text: "+$1.00", title: "You added $1.00" },
    // Labels that would cover each other are one.
    { x: 500, text: "+$0.75", title: "You added $0.50, You added $0.25" },
    { x: 800, text: "+5 min of time", title: "You added 5 min of time" },
    { x: 1_000, text: "+2,000 tokens", title: "You added 2,000 tokens" },
  ]);
  expect(marks.every(({ left, width }) => left >= 0 && left + width <= 1_000)).toBe(true);
  expect(trace.topUpsOf(rootTaskId)).toEqual([]);
});

test("the label of a top-up in the page's timeline stands left of the top-up if there is no room before a shortened time", () => {
  const scale = scaleOf(500);
  const [fold] = scale.folds;
  const point = { seq: 5, at: 980, value: 1, add: { maxCostUsd: 1 }, by: "ada" };
  const [mark] = topUpMarks([point], scale);
  expect(mark?.left).toBe((mark?.x ?? 0) - (mark?.width ?? 0));
  expect((mark?.x ?? Infinity) + (mark?.width ?? 0)).toBeGreaterThan(fold?.x ?? Infinity);
});

test("a wait of all agents is shortened to a fixed width in the page's timeline, or shown in its full length", () => {
  const view = {
    startedAt: 0,
    recoveries: [],
    forkedFrom: null,
    waits: [{ seq: 5, lastAt: 1_000, at: 3_601_000 }],
  };
  const scale = timeScale(view, 3_602_000, 1_000, 0.1);
  expect(scale.folds).toMatchObject([{ kind: "wait", seq: 5, x: 450, width: 100 }]);
  expect(scale.x({ at: 3_601_500, seq: 6 })).toBe(775);
  const open = timeScale({ ...view, waits: [] }, 3_602_000, 1_000, 0.1, { waitsSince: 2_000 });
  expect(open.folds).toMatchObject([{ kind: "wait", x: 900, width: 100 }]);
  expect(timeScale(view, 3_602_000, 1_000, 0.1, { isUnfolded: true }).folds).toEqual([]);
  expect(timeScale(view, 3_602_000, 1_000, 0.1, { waitsSince: 3_601_990 }).folds).toHaveLength(1);
});
