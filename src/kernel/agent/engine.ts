import type { RunId } from "../base/identity.ts";
import type { Lease, Rest } from "../stores/lease.ts";

/** How a host left a run that it drove. */
export interface DriveResult {
  /**
   * State in which the run is left: ended, ready for the next owner, or suspended until mail arrives or a time is
   * reached.
   */
  readonly rest: Rest;
  /** Whether the lease was released together with the last commit (`Journal.appendAndRelease`). */
  readonly isReleased: boolean;
}

/** Drives runs on behalf of an engine. */
export interface RunHost {
  /** Works on the run of this lease until the run is idle or ended, or until the lease is lost (`lease_lost`). */
  drive(lease: Lease): Promise<DriveResult>;
}

/**
 * Decides which worker owns a run and when the run wakes up. Journal, ledger and events belong to the store.
 *
 * - G1: at most one host drives a run at a time. The lease's epoch fences earlier owners.
 * - G2: a run that is new, has mail or has reached its wake-up time is driven, even if any number of processes die
 *   meanwhile.
 * - G3: `stop` waits until the runs being driven are idle or ended, and drives no other run.
 */
export interface Engine {
  /** Starts to claim runs and passes each of them to the host. */
  start(host: RunHost): Promise<void>;
  /** Tells the engine that a run is new or has new mail. The engine finds a run later even if this call is lost. */
  wake(runId: RunId): void;
  /** Stops claiming runs and waits for the runs being driven (G3). */
  stop(): Promise<void>;
}
