import type { RunId } from "../base/identity.ts";
import type { Lease, Rest } from "../stores/lease.ts";

/** How a host left a run. */
export interface DriveResult {
  readonly rest: Rest;
  /** It was released with its last commit (`Journal.appendAndRelease`). */
  readonly isReleased: boolean;
}

/** What an engine drives: given a lease, it works on the run until it rests, or until `lease_lost`. */
export interface RunHost {
  drive(lease: Lease): Promise<DriveResult>;
}

/**
 * Who owns a run and when it wakes; nothing else. Journal, ledger and events are the store's.
 *
 * - G1 A run is driven by at most one host at a time; the lease's epoch fences whoever came before.
 * - G2 A run that is new, has mail or whose time has come is driven, however many processes die meanwhile.
 * - G3 `stop` waits for what is being driven to rest, and drives nothing new.
 */
export interface Engine {
  start(host: RunHost): Promise<void>;
  /** There is a new run, or new mail for one. Lost wakes are found without it, later. */
  wake(runId: RunId): void;
  stop(): Promise<void>;
}
