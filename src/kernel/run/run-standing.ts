/**
 * What a run waits for:
 *
 * - `person`: an approval, the answer to a question, or the result of a client-side tool.
 * - `signal`: a signal, by `RunHandle.signal`.
 * - `time`: the end of a sleep or of a timeout.
 * - `message`: the reply of an agent that was asked.
 * - `seat`: a seat for a task that is pending or was preempted.
 * - `budget`: money, tokens or turns that other calls have reserved.
 * - `worker`: a worker that claims the run.
 * - `compaction`: the end of a compaction of its session (S5).
 */
export const waitCauses = Object.freeze([
  "person",
  "signal",
  "time",
  "message",
  "seat",
  "budget",
  "worker",
  "compaction",
] as const);

/** What a run waits for. */
export type WaitCause = (typeof waitCauses)[number];

/** The status of a run that has not ended, as its owner knows it. */
export interface RunStanding {
  /** `waiting`: every live task only waits. `paused`: no step starts until `RunHandle.resume`. */
  readonly status: "running" | "waiting" | "paused";
  /** What the tasks of a waiting run wait for, in the order of `waitCauses`. Empty in the other cases. */
  readonly waitsFor: readonly WaitCause[];
}
