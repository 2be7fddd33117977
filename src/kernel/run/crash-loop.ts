import type { TaskId } from "../base/identity.ts";

/** L7: a worker that owned a run and stopped without releasing it. */
export interface LostOwner {
  /** Name of the worker. */
  readonly workerId: string;
  /**
   * Id of this registration of the worker, which distinguishes processes of the same name. `null` if the store need
   * not know it.
   */
  readonly registration: string | null;
  /** Name of the worker's machine. `null` if it is unknown. */
  readonly host: string | null;
  /** Time at which the loss was noticed, in epoch milliseconds. */
  readonly at: number;
  /**
   * Whether it was known at that time that the worker's process had ended. `Leases.haveEnded` says what is known
   * later.
   */
  readonly hasEnded: boolean;
}

/** A call that was in flight when a run lost its owner. */
export interface LostCall {
  /** The task that made the call. */
  readonly taskId: TaskId;
  /** What was called. */
  readonly kind: "model" | "tool";
  /** Name of the model or the tool. `null` if the journal does not name it. */
  readonly name: string | null;
}

/**
 * L7: why a run is paused as a crash loop. Several workers in a row were lost while they executed the run, and it
 * made no progress. The fields contain what is known, so that a person can find the cause. `RunHandle.resume`
 * continues the run from its journal.
 */
export interface CrashLoop {
  /** The number of ended processes at which the worker pauses a run. */
  readonly limit: number;
  /** The lost workers whose processes are known to have ended, oldest first. */
  readonly ended: readonly LostOwner[];
  /**
   * The lost workers whose processes may still live, for example because they lost only their connection to the
   * store. They do not count towards the limit.
   */
  readonly unknown: readonly LostOwner[];
  /** The calls that were in flight at the last loss. Empty if the process ended in the agent's own code or in a step. */
  readonly calls: readonly LostCall[];
}
