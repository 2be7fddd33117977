import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { systemClock } from "../../../src/runtime/index.ts";

const minute = 60_000;

describe("systemClock.schedule()", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"], now: 1_700_000_000_000 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Schedules a call in ten minutes and returns whether it was made. */
  function inTenMinutes() {
    const state = { isCalled: false };
    const cancel = systemClock.schedule(Date.now() + 10 * minute, () => {
      state.isCalled = true;
    });
    return { state, cancel };
  }

  test("systemClock.schedule() calls back at the given time, and not before", () => {
    const { state } = inTenMinutes();
    vi.advanceTimersByTime(10 * minute - 1);
    expect(state.isCalled).toBe(false);
    vi.advanceTimersByTime(1);
    expect(state.isCalled).toBe(true);
  });

  test("systemClock.schedule() calls back within a minute after the clock was set forward or the machine has slept", () => {
    const { state } = inTenMinutes();
    vi.setSystemTime(Date.now() + 60 * minute);
    vi.advanceTimersByTime(minute);
    expect(state.isCalled).toBe(true);
  });

  test("systemClock.schedule() does not call back before the given time if the clock is set back", () => {
    const { state } = inTenMinutes();
    vi.setSystemTime(Date.now() - 5 * minute);
    vi.advanceTimersByTime(12 * minute);
    expect(state.isCalled).toBe(false);
    vi.advanceTimersByTime(3 * minute);
    expect(state.isCalled).toBe(true);
  });

  test("systemClock.schedule() does not call back after it was cancelled, also between two looks at the clock", () => {
    const { state, cancel } = inTenMinutes();
    vi.advanceTimersByTime(5 * minute);
    cancel();
    vi.advanceTimersByTime(10 * minute);
    expect(state.isCalled).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
  });
});
