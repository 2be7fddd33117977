import { sameCaller, startsLater, type RunRecord, type RunSummary } from "../../../kernel/index.ts";
import { RunState } from "../codec/stored-run.ts";

/** What is known about a run when it is created. */
export interface FirstStanding {
  /** Whether its creator owns it from the start. */
  readonly isClaimed: boolean;
  /** Whether it waits for the compaction of its session. */
  readonly isHeld: boolean;
  /** Whether it waits for its start time. */
  readonly isScheduled: boolean;
}

/** Returns the state of a new run. */
export function firstState({ isClaimed, isHeld, isScheduled }: FirstStanding): number {
  if (isClaimed) return RunState.OWNED;
  if (isHeld) return RunState.HELD;
  return isScheduled ? RunState.SUSPENDED : RunState.READY;
}

/** What decides whether input becomes steering. */
export interface SteeringCase {
  /** Whether the caller wants to steer a run that is being driven, too. */
  readonly always: boolean;
  /** Whether the run has unread mail. Matters only while its status is `pending`. */
  readonly hasMail: boolean;
}

/** S5: whether the input of `record` becomes steering of a run of the same agent in the same session. */
export function takesSteering(
  run: RunSummary,
  record: RunRecord,
  { always, hasMail }: SteeringCase,
): boolean {
  const { status, waitsFor, startAt } = run;
  // A run that mail has woken is pending until a worker claims it. A held run waits for a compaction.
  const isLeft =
    status === "waiting" ||
    status === "paused" ||
    waitsFor.includes("compaction") ||
    (status === "pending" && hasMail);
  // L9: a run takes no input as steering before its start time.
  const isScheduled = startsLater({ startAt, createdAt: record.createdAt });
  return (always || (isLeft && !isScheduled)) && sameCaller(run, record);
}
