import type { TaskId } from "../base/identity.ts";

/** L7: an owner that a run lost: a worker that left it without releasing it. */
export interface LostOwner {
  /** Name of the worker. */
  readonly workerId: string;
  /** What tells this life of the worker from others under the same name. `null` if the store need not know it. */
  readonly registration: string | null;
  /** Name of the worker's machine. `null` if it is unknown. */
  readonly host: string | null;
  /** When the loss was noticed, in epoch milliseconds. */
  readonly at: number;
  /** Whether the worker's process was known to have ended at that time. `Leases.haveEnded` tells what is known later. */
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
 * L7: why a run is paused as a crash loop: its owners were lost again and again while they executed it, and it made no progress. It
 * tells what is known, so that a person can find the cause. `RunHandle.resume` continues the run where it stood.
 */
export interface CrashLoop {
  /** The number of deaths at which the worker pauses a run. */
  readonly limit: number;
  /** The lost owners whose processes are known to have ended, the oldest first. */
  readonly ended: readonly LostOwner[];
  /** The lost owners of which that is unknown. They may have lost only their connection to the store. They do not count. */
  readonly unknown: readonly LostOwner[];
  /** The calls that were in flight at the last loss. Empty if the process ended in the agent's own code or in a step. */
  readonly calls: readonly LostCall[];
}
