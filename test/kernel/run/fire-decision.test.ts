import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  decideFire,
  fireGraceMs,
  firedState,
  fireTimes,
  formatRunId,
  newScheduleState,
  pausedState,
  resumedState,
  scheduleDueAt,
  type DueSchedule,
  type FireTimes,
  type MissedPolicy,
  type OverlapPolicy,
  type ScheduleState,
} from "../../../src/kernel/index.ts";

const hour = 3_600_000;

/** Fires at every full hour from 0 on. */
const hourly: FireTimes = fireTimes({ everyMs: hour, startAt: 0 }, () => {
  throw new Error("an interval needs no reader");
});

function decide(state: ScheduleState, now: number, more: Partial<DueSchedule> = {}) {
  return decideFire(state, {
    overlap: "skip",
    missed: "once",
    times: hourly,
    now,
    isRunning: false,
    ...more,
  });
}

const atOne = newScheduleState(hour);

describe("fireTimes()", () => {
  test("an interval schedule fires at its start and at every multiple of the interval after it", () => {
    const times = fireTimes({ everyMs: 10, startAt: 5 }, () => expect.unreachable());
    expect([-1, 4, 5, 14, 15].map((after) => times.next(after))).toEqual([5, 5, 15, 15, 25]);
    expect([4, 5, 14, 15, 26].map((until) => times.last(until))).toEqual([null, 5, 5, 15, 25]);
  });

  test("a schedule with a single time fires once", () => {
    const times = fireTimes({ at: 5 }, () => expect.unreachable());
    expect([4, 5].map((after) => times.next(after))).toEqual([5, null]);
    expect([4, 5, 99].map((until) => times.last(until))).toEqual([null, 5, 5]);
  });

  test("a schedule with a cron expression does not fire before its start", () => {
    const cron = { fires: () => hourly, time: () => 0 };
    const times = fireTimes({ cron: "0 * * * *", timeZone: "UTC", startAt: 2 * hour }, () => cron);
    expect(times.next(0)).toBe(2 * hour);
    expect(times.next(2 * hour)).toBe(3 * hour);
    expect(times.last(hour)).toBeNull();
    expect(times.last(2 * hour)).toBe(2 * hour);
  });
});

describe("decideFire()", () => {
  test("a schedule is idle if its time has not come, if it is paused or if it has no further fire", () => {
    expect(decide(atOne, hour - 1)).toEqual({ kind: "idle" });
    expect(decide(pausedState(atOne), hour)).toEqual({ kind: "idle" });
    expect(decide({ ...atOne, nextAt: null }, hour)).toEqual({ kind: "idle" });
  });

  test("a due fire of a schedule is stored as firing before the schedule moves on to its next time", () => {
    const decision = decide(atOne, hour);
    expect(decision).toMatchObject({ kind: "fire", state: { firing: hour, nextAt: 2 * hour } });
    if (decision.kind !== "fire") return;
    expect(scheduleDueAt(decision.state)).toBe(hour);
    const fired = firedState(decision.state, formatRunId("1"));
    expect(fired).toMatchObject({ firing: null, lastAt: hour, lastRunId: "run_1", nextAt: 2 * hour });
    expect(scheduleDueAt(fired)).toBe(2 * hour);
  });

  test("a schedule with overlap skip drops a fire while the last run has not ended", () => {
    const decision = decide(atOne, hour, { isRunning: true });
    const skipped = { at: hour, reason: "overlap" };
    expect(decision).toMatchObject({ kind: "skip", state: { firing: null, nextAt: 2 * hour, skipped } });
  });

  test.each([
    ["queue", false],
    ["cancel", true],
  ] as const)(
    "a schedule with %s lets one fire wait for the end of the last run and drops further fires",
    (overlap, cancels) => {
      const waiting = decide(atOne, hour, { overlap, isRunning: true });
      expect(waiting).toMatchObject({ kind: "wait", cancels, state: { nextAt: hour, waits: "overlap" } });
      if (waiting.kind !== "wait") return;
      const later = 5 * hour + 7;
      const skipped = { at: 5 * hour, reason: "overlap" };
      const dropped = decide(waiting.state, later, { overlap, isRunning: true });
      expect(dropped).toEqual({ ...waiting, state: { ...waiting.state, skipped } });
      if (dropped.kind !== "wait") return;
      expect(decide(dropped.state, later, { overlap, isRunning: true })).toMatchObject({
        state: dropped.state,
      });
      expect(decide(waiting.state, later, { overlap })).toMatchObject({
        kind: "fire",
        state: {
          firing: hour,
          nextAt: 6 * hour,
          waits: null,
          skipped: { at: 5 * hour, reason: "overlap" },
        },
      });
    },
  );

  const late = 5 * hour + 30_000;

  test("a schedule with missed skip drops late fires and starts a run for a fire that is on time", () => {
    expect(decide(atOne, late, { missed: "skip" })).toMatchObject({
      kind: "fire",
      state: { firing: 5 * hour, nextAt: 6 * hour, skipped: { at: hour, reason: "missed" } },
    });
    expect(decide(atOne, 5 * hour + fireGraceMs + 1, { missed: "skip" })).toMatchObject({
      kind: "skip",
      state: { firing: null, nextAt: 6 * hour },
    });
  });

  test("a schedule with missed once starts one run, for the latest fire", () => {
    expect(decide(atOne, late + 10 * 60_000)).toMatchObject({
      kind: "fire",
      state: { firing: 5 * hour, nextAt: 6 * hour },
    });
  });

  test("a schedule with missed all starts a run for each fire, the oldest first, one after another", () => {
    const first = decide(atOne, late, { missed: "all" });
    expect(first).toMatchObject({ kind: "fire", state: { firing: hour, nextAt: 2 * hour } });
    if (first.kind !== "fire") return;
    const fired = firedState(first.state, formatRunId("1"));
    const waiting = decide(fired, late, { missed: "all", isRunning: true });
    expect(waiting).toMatchObject({ kind: "wait", cancels: false, state: { waits: "backlog" } });
    if (waiting.kind !== "wait") return;
    expect(decide(waiting.state, late, { missed: "all", overlap: "cancel", isRunning: true })).toMatchObject({
      kind: "wait",
      cancels: false,
    });
    expect(decide(waiting.state, late, { missed: "all" })).toMatchObject({
      kind: "fire",
      state: { firing: 2 * hour, nextAt: 3 * hour },
    });
  });

  test("a schedule with a single missed time ends with missed skip, and starts its run late with missed once", () => {
    const times = fireTimes({ at: hour }, () => expect.unreachable());
    expect(decide(atOne, late, { times, missed: "skip" })).toMatchObject({
      kind: "skip",
      state: { nextAt: null },
    });
    expect(decide(atOne, late, { times })).toMatchObject({
      kind: "fire",
      state: { firing: hour, nextAt: null },
    });
  });

  test("a schedule that is resumed continues with the first fire after the current time", () => {
    const resumed = resumedState(pausedState(atOne), hourly, 7 * hour + 1);
    expect(resumed).toMatchObject({ paused: false, nextAt: 8 * hour });
  });

  test("T3: no fire time of a schedule repeats and only a policy drops one, whatever the clock and the runs do", () => {
    const step = fc.record({
      by: fc.integer({ min: -3 * hour, max: 5 * hour }),
      isRunning: fc.boolean(),
    });
    const policies = fc.record({
      overlap: fc.constantFrom<OverlapPolicy>("skip", "queue", "cancel"),
      missed: fc.constantFrom<MissedPolicy>("skip", "once", "all"),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), policies, (steps, { overlap, missed }) => {
        let state = atOne;
        let now = 0;
        const fires: number[] = [];
        for (const { by, isRunning } of steps) {
          now = Math.max(0, now + by);
          for (let round = 0; ; round++) {
            expect(round).toBeLessThan(500);
            const busy = isRunning && fires.length > 0;
            const decision = decide(state, now, { overlap, missed, isRunning: busy });
            if (decision.kind === "idle" || (decision.kind === "wait" && decision.state === state)) break;
            expect(decision.state.nextAt ?? Infinity).toBeGreaterThanOrEqual(state.nextAt ?? Infinity);
            state = decision.state;
            if (decision.kind !== "fire" || state.firing === null) continue;
            expect(state.firing).toBeLessThanOrEqual(now);
            fires.push(state.firing);
            state = firedState(state, formatRunId(String(fires.length)));
          }
        }
        expect(fires).toEqual([...new Set(fires)].toSorted((one, other) => one - other));
        if (overlap === "skip" || missed !== "all" || steps.some((each) => each.isRunning)) return;
        // Nothing overlaps and every missed fire runs: the fires are all full hours.
        expect(fires).toEqual(fires.map((_, index) => (index + 1) * hour));
      }),
    );
  });
});
