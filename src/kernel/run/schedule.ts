import type { AgentId, RunId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";

/** When a schedule fires. All times are epoch milliseconds. */
export type ScheduleTimes =
  /** The schedule fires by the wall clock of a time zone, and not before `startAt` if that is given. */
  | { readonly cron: string; readonly timeZone: string; readonly startAt?: number }
  /** The schedule fires at `startAt` and every `everyMs` after it. */
  | { readonly everyMs: number; readonly startAt: number }
  /** The schedule fires once. */
  | { readonly at: number };

/** What happens to a fire while the run of an earlier fire has not ended. */
export const overlapPolicies = Object.freeze(["skip", "queue", "cancel"] as const);

/** What happens to a fire while the run of an earlier fire has not ended. */
export type OverlapPolicy = (typeof overlapPolicies)[number];

/** What happens to fires for which no process was open that hosts the agent. */
export const missedPolicies = Object.freeze(["skip", "once", "all"] as const);

/** What happens to fires for which no process was open that hosts the agent. */
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

/** How far a schedule has come. Stored with the schedule and changed only with an expected version. */
export interface ScheduleState {
  /** Time of the next fire. `null` if there is none. */
  readonly nextAt: number | null;
  /** Time of a fire whose run is being started. Every process that finds it starts the same run. `null`: none. */
  readonly firing: number | null;
  /**
   * Present while the fire at `nextAt` waits for the end of the last run. `overlap`: because of the overlap policy.
   * `backlog`: because missed fires run one after another.
   */
  readonly waits: "overlap" | "backlog" | null;
  readonly paused: boolean;
  /** Time of the last fire that started a run, and that run. */
  readonly lastAt: number | null;
  readonly lastRunId: RunId | null;
  /** The last fire that started no run. */
  readonly skipped: SkippedFire | null;
}

/** A schedule, as `Runtime.schedules` returns it. */
export interface Schedule {
  /** Id of the schedule. A schedule that is removed and created again has another id. */
  readonly id: string;
  /** Name of the schedule: unique among those of the same tenant and user. */
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
  /** Whether an answer that reports nothing leaves no entry in the session. */
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

/** Reads cron expressions and local times. It is injected, because the kernel and the runtime import no package. */
export interface CronReader {
  /** Throws `invalid_argument` if the expression or the time zone is invalid. */
  fires(expression: string, timeZone: string): FireTimes;
  /**
   * Returns the epoch milliseconds of an ISO 8601 time. A time without an offset is a time of the time zone's wall clock.
   * Throws `invalid_argument` if text or time zone is invalid.
   */
  time(text: string, timeZone: string): number;
}

/** Returns the fires of a schedule. `cron` is called only for a cron expression. */
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
  const fire = (count: number): number => startAt + count * everyMs;
  return {
    next: (after) => (after < startAt ? startAt : fire(Math.floor((after - startAt) / everyMs) + 1)),
    last: (until) => (until < startAt ? null : fire(Math.floor((until - startAt) / everyMs))),
  };
}
