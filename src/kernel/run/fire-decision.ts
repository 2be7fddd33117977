import type { RunId } from "../base/identity.ts";
import type { FireTimes, MissedPolicy, OverlapPolicy, ScheduleState, SkippedFire } from "./schedule.ts";

/** A fire that starts later than this is missed. Milliseconds. */
export const fireGraceMs = 60_000;

/** What a process does about a schedule that is due. The new state is stored before anything else happens. */
export type FireDecision =
  /** No fire is due. */
  | { readonly kind: "idle" }
  /** The fire `state.firing` starts a run. */
  | { readonly kind: "fire"; readonly state: ScheduleState }
  /** The fire starts no run; `state.skipped` says why. */
  | { readonly kind: "skip"; readonly state: ScheduleState }
  /** The fire waits for the end of the last run, which is cancelled if `cancels` is set. */
  | { readonly kind: "wait"; readonly state: ScheduleState; readonly cancels: boolean };

export interface DueSchedule {
  readonly overlap: OverlapPolicy;
  readonly missed: MissedPolicy;
  readonly times: FireTimes;
  readonly now: number;
  /** Whether the run of the last fire has not ended. */
  readonly isRunning: boolean;
}

/** The state of a schedule whose first fire is at `nextAt`. */
export function newScheduleState(nextAt: number): ScheduleState {
  return {
    nextAt,
    firing: null,
    waits: null,
    paused: false,
    lastAt: null,
    lastRunId: null,
    skipped: null,
  };
}

/** The time from which a process must attend to the schedule. `null`: never. */
export function scheduleDueAt({ firing, paused, nextAt }: ScheduleState): number | null {
  return firing ?? (paused ? null : nextAt);
}

/**
 * Decides about the next fire. `nextAt` never moves back, so that a clock that is set back repeats no fire.
 *
 * - A fire within `fireGraceMs` is on time. It starts a run, unless the last run has not ended: then `overlap` decides.
 * - A later fire is missed. `skip`: it starts no run. `once`: the latest due fire stands for all of them. `all`: each
 *   missed fire starts a run, the oldest first, after the run before it has ended.
 */
export function decideFire(state: ScheduleState, due: DueSchedule): FireDecision {
  const { nextAt, waits } = state;
  const { now, isRunning, missed, times, overlap } = due;
  if (state.paused || state.firing !== null || nextAt === null || nextAt > now) return { kind: "idle" };
  if (waits !== null && isRunning)
    return { kind: "wait", state, cancels: waits === "overlap" && overlap === "cancel" };
  // Fires that came due while this one waited overlapped with the last run as well. Only one waits.
  if (waits === "overlap") return fire(state, nextAt, times.next(now));
  const isMissed = now - nextAt > fireGraceMs;
  if (isMissed && missed === "all")
    return isRunning
      ? { kind: "wait", state: { ...state, waits: "backlog" }, cancels: false }
      : fire(state, nextAt, times.next(nextAt));
  if (isMissed && missed === "skip") return decideOnTime(state, due);
  return decideOverlap(state, due, isMissed ? (times.last(now) ?? nextAt) : nextAt);
}

/** Drops the missed fires, and decides about the first fire that is on time. */
function decideOnTime(state: ScheduleState, due: DueSchedule): FireDecision {
  const { times, now } = due;
  const late = state.nextAt ?? now;
  const onTime = times.next(now - fireGraceMs - 1);
  const skipped: SkippedFire = { at: late, reason: "missed" };
  const rest: ScheduleState = { ...state, nextAt: onTime, waits: null, skipped };
  return onTime === null || onTime > now ? { kind: "skip", state: rest } : decideOverlap(rest, due, onTime);
}

function decideOverlap(state: ScheduleState, due: DueSchedule, at: number): FireDecision {
  const { times, isRunning, overlap } = due;
  if (!isRunning) return fire(state, at, times.next(at));
  if (overlap !== "skip")
    return {
      kind: "wait",
      state: { ...state, nextAt: at, waits: "overlap" },
      cancels: overlap === "cancel",
    };
  const skipped: SkippedFire = { at, reason: "overlap" };
  return { kind: "skip", state: { ...state, nextAt: times.next(at), waits: null, skipped } };
}

function fire(state: ScheduleState, at: number, next: number | null): FireDecision {
  return { kind: "fire", state: { ...state, firing: at, nextAt: next, waits: null } };
}

/** The state after the run of a fire was started. */
export function firedState(state: ScheduleState, runId: RunId): ScheduleState {
  return { ...state, firing: null, lastAt: state.firing, lastRunId: runId };
}

/** The state after a fire that could not start a run. */
export function unfiredState(state: ScheduleState, skipped: SkippedFire): ScheduleState {
  return { ...state, firing: null, skipped };
}

/** The state of a paused schedule. A fire whose run is being started still starts it. */
export function pausedState(state: ScheduleState): ScheduleState {
  return { ...state, paused: true, waits: null };
}

/** The state of a resumed schedule. It continues with the first fire after `now`: fires of the pause are not missed. */
export function resumedState(state: ScheduleState, times: FireTimes, now: number): ScheduleState {
  return { ...state, paused: false, nextAt: times.next(now) };
}
