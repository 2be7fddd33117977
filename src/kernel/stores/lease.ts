import type { AgentId, RunId } from "../base/identity.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";

/** The right to write for one run. A later lease of the same run has a higher epoch and ends this one (J3). */
export interface Lease {
  readonly runId: RunId;
  readonly epoch: number;
  readonly workerId: string;
}

/** How an owner leaves a run: done with it for good, ready for the next owner, or until mail comes or a time is there. */
export type Rest =
  | { readonly kind: "ended" }
  | { readonly kind: "ready" }
  | { readonly kind: "suspended"; readonly wakeAt: number | null };

/** An agent that a worker hosts. */
export interface AgentVersion {
  readonly agentId: AgentId;
  /** J9: only runs that this version started, `null` being one that declares none. Absent: of any version. */
  readonly version?: string | null;
}

export interface ClaimOptions {
  readonly workerId: string;
  readonly limit: number;
  /** Only runs of these agents; absent: of any. */
  readonly agents?: readonly AgentVersion[];
  /** Not these: the worker knows that they are for another (J9). */
  readonly except?: readonly RunId[];
  /** Epoch milliseconds; decides whose wake time has come. */
  readonly now: number;
}

/**
 * Who owns which run, in the store. Every store passes `leaseContract`, which checks:
 *
 * - L1 A run has at most one owner whose writes are taken: claiming or seizing it raises the epoch and fences the one before.
 * - L2 `claim` gives runs that are ready: new, released as ready, woken by mail since they were left or by time, or left behind
 *   by a worker that is gone. An ended run only for mail, never one whose owner lives.
 * - L3 Mail that came before `release` and was not consumed makes the run ready, an ended one too: no wake is lost.
 * - L4 A lease that was lost releases nothing.
 * - L5 When more runs are ready than asked for, tenants are served in turn; within one, the higher priority first, then the
 *   longest ready.
 * - L6 A worker's name is not its runs: see `enlist`.
 */
export interface Leases {
  /**
   * Workers that do not say so are gone; a store that can tell a dead process by itself does. L6: whoever enlists under the name of one
   * that is gone does not get its runs along: they are left behind, for anyone. Enlisting twice is enlisting once.
   */
  enlist(workerId: string): Promise<void>;
  dismiss(workerId: string): Promise<void>;
  claim(options: ClaimOptions): MaybePromise<readonly Lease[]>;
  /** Takes a run whoever has it, if it exists and has not ended, or has mail. */
  seize(runId: RunId, workerId: string): Promise<Lease | undefined>;
  /** J3: before an effect. Throws `lease_lost`. */
  check(lease: Lease): Promise<void>;
  /** Rejects with `lease_lost`. Returns `undefined` if the release completed synchronously. */
  release(lease: Lease, rest: Rest): Promise<void> | undefined;
}
