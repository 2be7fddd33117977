import type { AgentId, RunId, SessionId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { Hash } from "../base/sources.ts";
import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { HistoryRetention } from "../limits/history-retention.ts";
import type { Priority } from "../limits/priority.ts";
import type { RunKind } from "./run-record.ts";

/** When a schedule fires. All times are epoch milliseconds. */
export type ScheduleTimes =
  /** The schedule fires at local times of a time zone, and not before `startAt` if that is given. */
  | { readonly cron: string; readonly timeZone: string; readonly startAt?: number }
  /** The schedule fires at `startAt` and every `everyMs` after it. */
  | { readonly everyMs: number; readonly startAt: number }
  /** The schedule fires once. */
  | { readonly at: number };

/** What happens to a fire while the run of an earlier fire has not ended. */
export const overlapPolicies = Object.freeze(["skip", "queue", "cancel"] as const);

/** What happens to a fire while the run of an earlier fire has not ended. */
export type OverlapPolicy = (typeof overlapPolicies)[number];

/** What happens to fires that were due while no process that hosts the agent was open. */
export const missedPolicies = Object.freeze(["skip", "once", "all"] as const);

/** What happens to fires that were due while no process that hosts the agent was open. */
export type MissedPolicy = (typeof missedPolicies)[number];

/** A fire that started no run, and why. */
export interface SkippedFire {
  /** Time of the fire, in epoch milliseconds. */
  readonly at: number;
  /**
   * `overlap`: the run of an earlier fire had not ended. `busy`: another run of the agent had not ended in the session.
   * `missed`: no process that hosts the agent was open. `error`: the run could not be started.
   */
  readonly reason: "overlap" | "busy" | "missed" | "error";
  /** The message of the error. Present only with the reason `error`. */
  readonly error?: string;
}

/**
 * The progress of a schedule. It is stored with the schedule, and changed only if the stored version is the
 * expected one.
 */
export interface ScheduleState {
  /** Time of the next fire. `null` if there is none. */
  readonly nextAt: number | null;
  /**
   * Time of a fire whose run is being started. Every process that reads it starts the same run. `null` if no run is
   * being started.
   */
  readonly firing: number | null;
  /**
   * Present while the fire at `nextAt` waits for the end of the last run. `overlap`: it waits because of the
   * overlap policy. `backlog`: it waits because missed fires run one after another.
   */
  readonly waits: "overlap" | "backlog" | null;
  readonly paused: boolean;
  /** Time of the last fire that started a run, and the id of that run. */
  readonly lastAt: number | null;
  readonly lastRunId: RunId | null;
  /** The last fire that started no run. */
  readonly skipped: SkippedFire | null;
}

/** A schedule, as `Runtime.schedules` returns it. */
export interface Schedule {
  /** Id of the schedule. A schedule that is removed and created again has another id. */
  readonly id: string;
  /** Name of the schedule. It is unique among the schedules of the same tenant and user. */
  readonly name: string;
  readonly tenantId: string | null;
  readonly userId: string | null;
  /** Id of the agent that the runs start. */
  readonly agentId: AgentId;
  /** Input of the runs. */
  readonly input: JsonValue;
  /** When the schedule fires. */
  readonly times: ScheduleTimes;
  readonly overlap: OverlapPolicy;
  readonly missed: MissedPolicy;
  /** Whether a run is a heartbeat: if its answer reports nothing, it leaves no entry in the session. */
  readonly heartbeat: boolean;
  /** The other options of the runs: `sessionId`, `budget`, `metadata` and so on. */
  readonly run: JsonObject;
  /** Time of creation, in epoch milliseconds. */
  readonly createdAt: number;
  /** `active`, `paused`, or `done` if the schedule has no further fire. */
  readonly status: "active" | "paused" | "done";
  /**
   * Time of the next fire, in epoch milliseconds. A time in the past means that the fire waits for the end of the last
   * run, or for a process that hosts the agent. `null` if the schedule is paused or done.
   */
  readonly nextAt: number | null;
  /** Time of the last fire that started a run. `null` if there is none. */
  readonly lastAt: number | null;
  /** The run of the last fire. `null` if there is none. */
  readonly lastRunId: RunId | null;
  /** The last fire that started no run, and why. `null` if there is none. */
  readonly skipped: SkippedFire | null;
}

/** The fires of a schedule. All times are epoch milliseconds. */
export interface FireTimes {
  /** Returns the first fire after this time. `null` if there is none. */
  next(after: number): number | null;
  /** Returns the last fire at or before this time. `null` if there is none. */
  last(until: number): number | null;
}

/** Reads cron expressions and local times. It is passed in, because the kernel and the runtime import no packages. */
export interface CronReader {
  /** Throws `invalid_argument` if the expression or the time zone is invalid. */
  fires(expression: string, timeZone: string): FireTimes;
  /**
   * Returns the epoch milliseconds of an ISO 8601 time. A time without an offset is a local time of the time zone.
   * Throws `invalid_argument` if the text or the time zone is invalid.
   */
  time(text: string, timeZone: string): number;
}

/** Returns the fire times of a schedule. `cron` is called only for a cron expression. */
export function fireTimes(times: ScheduleTimes, cron: () => CronReader): FireTimes {
  if ("at" in times) return onceAt(times.at);
  if ("everyMs" in times) return interval(times);
  const { startAt = 0 } = times;
  const fires = cron().fires(times.cron, times.timeZone);
  return {
    next: (after) => fires.next(Math.max(after, startAt - 1)),
    last: (until) => {
      const found = fires.last(until);
      return found === null || found < startAt ? null : found;
    },
  };
}

function onceAt(at: number): FireTimes {
  return { next: (after) => (after < at ? at : null), last: (until) => (until < at ? null : at) };
}

function interval({ everyMs, startAt }: { readonly everyMs: number; readonly startAt: number }): FireTimes {
  const fireAt = (count: number): number => startAt + count * everyMs;
  return {
    next: (after) => (after < startAt ? startAt : fireAt(Math.floor((after - startAt) / everyMs) + 1)),
    last: (until) => (until < startAt ? null : fireAt(Math.floor((until - startAt) / everyMs))),
  };
}

/** Delay after which a fire counts as missed, in milliseconds. */
export const fireGraceMs = 60_000;

/** What a process does about a schedule that is due. It stores the new state before it does anything else. */
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

/** Returns the state of a new schedule whose first fire is at `nextAt`. */
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

/** Returns the time from which a process must look after the schedule. `null` means never. */
export function scheduleDueAt({ firing, paused, nextAt }: ScheduleState): number | null {
  return firing ?? (paused ? null : nextAt);
}

/**
 * Decides about the next fire. `nextAt` never moves back, so that a clock that is set back repeats no fire.
 *
 * - A fire within `fireGraceMs` is on time. If the last run has ended, the fire starts a run; otherwise `overlap`
 *   decides.
 * - A later fire is missed. `skip`: it starts no run. `once`: only the latest due fire starts a run. `all`: each
 *   missed fire starts a run, the oldest first, after the run before it has ended.
 */
export function decideFire(state: ScheduleState, due: DueSchedule): FireDecision {
  const { nextAt, waits } = state;
  const { now, isRunning, missed, times, overlap } = due;
  if (state.paused || state.firing !== null || nextAt === null || nextAt > now) return { kind: "idle" };
  // Fires that came due while this one waited overlapped with the last run as well. Only one waits.
  const rest = waits === "overlap" ? withoutLater(state, nextAt, times.last(now)) : state;
  if (waits !== null && isRunning)
    return { kind: "wait", state: rest, cancels: waits === "overlap" && overlap === "cancel" };
  if (waits === "overlap") return fire(rest, nextAt, times.next(now));
  const isMissed = now - nextAt > fireGraceMs;
  if (isMissed && missed === "all")
    return isRunning
      ? { kind: "wait", state: { ...state, waits: "backlog" }, cancels: false }
      : fire(state, nextAt, times.next(nextAt));
  if (isMissed && missed === "skip") return decideOnTime(state, due);
  return decideOverlap(state, due, isMissed ? (times.last(now) ?? nextAt) : nextAt);
}

/** Skips the missed fires, and decides about the first fire that is on time. */
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

/**
 * Returns the state in which the fires after `at` are skipped, up to the `last` one that is due. If the state
 * already says so, returns it unchanged.
 */
function withoutLater(state: ScheduleState, at: number, last: number | null): ScheduleState {
  if (last === null || last <= at || state.skipped?.at === last) return state;
  return { ...state, skipped: { at: last, reason: "overlap" } };
}

function fire(state: ScheduleState, at: number, next: number | null): FireDecision {
  return { kind: "fire", state: { ...state, firing: at, nextAt: next, waits: null } };
}

/** Returns the state after the run of a fire was started. */
export function firedState(state: ScheduleState, runId: RunId): ScheduleState {
  return { ...state, firing: null, lastAt: state.firing, lastRunId: runId };
}

/** Returns the state after a fire that could not start a run. */
export function unfiredState(state: ScheduleState, skipped: SkippedFire): ScheduleState {
  return { ...state, firing: null, skipped };
}

/**
 * T6: returns the state of a schedule after a person started a run at `now`. If a run is already being started, the
 * state names that run.
 */
export function startedState(state: ScheduleState, now: number): ScheduleState & { readonly firing: number } {
  // Two fires of the same millisecond would be one run. A time in the future would delay the run.
  return { ...state, firing: state.firing ?? (state.lastAt === now ? now - 1 : now) };
}

/** T5: returns the state of a schedule with new times, whose next fire is at `nextAt`. */
export function retimedState(state: ScheduleState, nextAt: number): ScheduleState {
  return { ...state, nextAt, waits: null };
}

/** Returns the state of a paused schedule. A fire whose run is being started still starts this run. */
export function pausedState(state: ScheduleState): ScheduleState {
  return { ...state, paused: true, waits: null };
}

/**
 * Returns the state of a resumed schedule. It continues with the first fire after `now`; fires during the pause do
 * not count as missed.
 */
export function resumedState(state: ScheduleState, times: FireTimes, now: number): ScheduleState {
  return { ...state, paused: false, nextAt: times.next(now) };
}

/**
 * A run that the commit which ends another run submits. A root task requests it with `ctx.report({ next })`. The
 * new run has the agent, user, tenant and channel of the run that ends.
 */
export interface NextRun {
  /** Key that distinguishes the next runs of one run: 1 to 64 letters, digits, `_` or `-`. */
  readonly key: string;
  /** Kind of the new run. Default: `"invocation"`. */
  readonly kind?: RunKind;
  /** Input of the new run. */
  readonly input: JsonValue;
  /**
   * Makes the new run a child that shares the prompt of the run that ends, as `Runtime.spawnChild` does. `tools`
   * are the names of the tools that it may call. `place` names its place within the session: it blocks neither the
   * session nor runs at other places. If absent, the new run has its own prompt.
   */
  readonly shares?: { readonly tools: readonly string[] | null; readonly place: string };
  /**
   * Whether no new run is submitted if its agent has an unfinished run in the same session or, with `shares`, at
   * the same place. Default: `false`.
   */
  readonly isAlone?: boolean;
  /** Session of the new run. `null` gives it a new session. Default: the session of the run that ends. */
  readonly sessionId?: SessionId | null;
  /** Budget of the new run. It replaces the agent's own budget. Default: the agent's own budget. */
  readonly budget?: Partial<ExecutionBudget>;
  /** Priority of the new run. Default: the priority of the run that ends. */
  readonly priority?: Priority;
  /** How long the history of the new run is kept. Default: `HistoryRetention.PERMANENT`. */
  readonly retention?: HistoryRetention;
  /**
   * Metadata of the new run, in addition to the metadata of the run that ends. An `AgentResolver` uses it to create
   * the agents of a run. If both have the same key, the value given here applies.
   */
  readonly metadata?: JsonObject;
}

/**
 * Returns the id of a next run. The id follows from the run that ends, so that a repeated end never submits a
 * second run. A run that was resumed ends again: `ends` counts its earlier ends, so that the next runs of each end
 * have different ids.
 */
export function nextRunId(hash: Hash, runId: RunId, key: string, ends: number): RunId {
  return `run_${hash(`${runId} ${key} ${ends}`).slice(0, 32)}` as RunId;
}
