import type { Fault } from "../base/fault.ts";
import { agentNameOf, type AgentId, type RunId } from "../base/identity.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";
import type { RunFlow } from "../limits/flow-control.ts";
import type { LostOwner } from "../run/crash-loop.ts";
import type { RunRecord } from "../run/run-record.ts";

/** The right to write to one run. A later lease of the same run has a higher epoch and invalidates this one (J3). */
export interface Lease {
  readonly runId: RunId;
  readonly epoch: number;
  readonly workerId: string;
  /** L7: number of workers in a row that were lost while they owned the run, and neither committed nor released it. Absent if there are none. */
  readonly recoveries?: number;
  /** L7: the first of these workers. It is the one that could execute the run as its last commit shows it. */
  readonly lostOwner?: LostOwner;
  /** L7: when the last of these workers was found lost, in epoch milliseconds. Absent if there are none. */
  readonly lostAt?: number;
  /** L17: the run has mail and still waits for its turn, so that its owner must start no task. Absent if it may start. */
  readonly isQueued?: true;
}

/**
 * How an owner releases a run: as ended, as ready for the next owner, or as suspended until mail arrives or the time
 * `wakeAt` (epoch milliseconds). `unloaded` is like `suspended`, for a run that the owner did not even load, because loading it may
 * be what ends processes (L7). `queued` gives a run its limits (L18).
 */
export type Rest =
  | { readonly kind: "ended" }
  | { readonly kind: "ready" }
  | { readonly kind: "suspended"; readonly wakeAt: number | null }
  | { readonly kind: "unloaded"; readonly wakeAt: number }
  | { readonly kind: "queued"; readonly flow: RunFlow };

/** An agent that a worker hosts. */
export interface AgentVersion {
  readonly agentId: AgentId;
  /**
   * J9: the worker takes only runs that this version started; `null` means runs of an agent that declares no version.
   * If absent, runs of any version.
   */
  readonly version?: string | null;
}

/** All agents of a name that a worker hosts, with any key and of any version. */
export interface AgentsOfName {
  readonly agentName: string;
}

/** Whether a worker that hosts these agents takes the run. */
export function takesRun(
  agents: readonly (AgentVersion | AgentsOfName)[],
  { agentId, agentVersion }: Pick<RunRecord, "agentId" | "agentVersion">,
): boolean {
  for (const hosted of agents) {
    if ("agentName" in hosted) {
      if (hosted.agentName === agentNameOf(agentId)) return true;
    } else if (
      hosted.agentId === agentId &&
      (hosted.version === undefined || hosted.version === agentVersion)
    )
      return true;
  }
  return false;
}

/** L15: which runs that are not ready an engine may take. */
export interface TakeOver {
  /** Whether suspended runs are claimed, too, because the engine may have lost the time at which they wake up. */
  readonly suspended: boolean;
  /** Whether runs are claimed whose owner's process is known to have ended, although its lease is still valid. */
  readonly ended: boolean;
}

/** Which runs `Leases.claim` may take, and for whom. */
export interface ClaimOptions {
  readonly workerId: string;
  /** Maximum number of runs to claim. */
  readonly limit: number;
  /** If given, only runs of these agents are claimed. */
  readonly agents?: readonly (AgentVersion | AgentsOfName)[];
  /** L10: if given, only these runs are claimed, for an engine that itself decides which run is executed. */
  readonly only?: readonly RunId[];
  /** L15: with `only`, for an engine whose server sends each run to one worker at a time. Default: runs that are not ready are left out. */
  readonly takeOver?: TakeOver;
  /** Runs that are not claimed, because the worker knows that another version must execute them (J9). */
  readonly except?: readonly RunId[];
  /** L21: name of the machine of the worker. If absent, runs that are bound to any machine are claimed as well. */
  readonly host?: string;
  /** Current time in epoch milliseconds. Suspended runs whose `wakeAt` has passed are ready. */
  readonly now: number;
}

/** Which ready runs to find. */
export interface ReadyOptions {
  /** If given, only runs of these agents are returned. */
  readonly agents?: readonly (AgentVersion | AgentsOfName)[];
  /** Current time in epoch milliseconds. */
  readonly now: number;
  /** Maximum number of runs. */
  readonly limit: number;
  /** Only runs that were created after this one are returned. If absent or unknown, the oldest run is the first. */
  readonly after?: RunId;
}

export interface EnlistOptions {
  /**
   * L12: called if the registration is lost, for example because the lock file of the worker was deleted. Other workers
   * may have taken over its runs. With `store_unavailable` the worker is registered again. With `already_exists` another
   * worker has registered under its name, so it can claim no more runs. With `store_lost` the store itself is gone, so the
   * worker must stop. If absent, `claim` rejects with the fault.
   */
  readonly onLost?: (fault: Fault) => void;
}

/**
 * The ownership of runs. Every store passes `leaseContract`, which checks:
 *
 * - L1 At most one owner of a run can write: claiming or seizing the run raises its epoch and fences the previous owner.
 * - L2 `claim` returns ready runs: new, released as ready, woken by mail or by time since their release, or left by a dead worker. An
 *   ended run is ready only if it has mail. A run whose owner is alive is never ready.
 * - L3 Unread mail at `release` makes the run ready, also an ended run, so no wake-up is lost.
 * - L4 A lost lease cannot release the run.
 * - L5 If more runs are ready than `limit`, tenants are served in turn; the runs without a tenant count as one tenant. Within a tenant,
 *   the higher priority comes first. At equal priority, each pair of user and agent is served in turn, so that many runs of one do not
 *   delay the runs of another. Within a pair, the run that has been ready longest comes first.
 * - L6 Runs belong to a worker process, not to its name: see `enlist`.
 * - L7 A lease shows whether the owners before it were lost, so that a run that ends every process that executes it can be recognised:
 *   `recoveries` grows each time a dead worker leaves the run, and starts again after a commit and after a release that is not
 *   `unloaded`. `lostOwner` is the first worker of the count. `haveEnded` tells of which lost owners the process is known to have
 *   ended: a later sign of life of the worker withdraws this. `RunRecord.recoveries` is the total, which never starts again.
 * - L8 `nextWakeAt` returns the earliest `wakeAt` after `now` of all suspended runs, so that a worker can wake them on time.
 * - L9 A run that is created with a later `startAt` is suspended until that time. Mail makes it ready earlier, so that it can be
 *   cancelled; its owner starts no task before that time.
 * - L10 `claim` with `only` returns those of the given runs that are ready, in the given order, up to `limit`. Tenants, priorities and
 *   turns do not matter. All other rules hold.
 * - L11 An agent name in `agents` matches the agents of this name with any key and of any version.
 * - L12 The store calls `onLost` when it finds that a registration was lost, before the next `claim` of the worker returns.
 * - L13 `isConfirmed` is true only while no other worker can have taken over the runs of the worker.
 * - L14 `countReady` counts the runs that a claim of any agent would return. Runs of dead workers may be missing.
 * - L15 `claim` with `only` and `takeOver` never takes a run from a live worker: it rejects with `run_owned`, and the caller tries again
 *   until the owner has released the run or its lease has ended. With `suspended` it also returns suspended runs, which does not
 *   count as a recovery. With `ended` it does not wait for the lease of a worker whose process is known to have ended: it returns the
 *   run, which counts as a recovery (L7) and fences that worker. A store that cannot know this waits for the lease.
 * - L16 `findReady` returns the runs that a claim would return, the oldest first, and changes nothing: no epoch, no owner, no turn and no
 *   number of recoveries.
 * - L17 A new run with a `flow` is ready once its limits admit it; until then it is queued, `pending`, and waits for `queue`. Its tenant
 *   has at most `concurrency.limit` admitted runs of the key that have not ended, and at most `rate.limit` runs of the key are admitted
 *   within any span of `rate.perMs`. These are checked by `claim`, in the transaction that admits the run, so that they hold over all
 *   workers. A run first waits for its place among the runs of its concurrency key, then for its rate. Of the runs of a key, the
 *   higher priority comes first, then the run that entered the queue first: at its creation, or at its start time (L9) if that is
 *   later. The runs of one key never delay those of another.
 *   An admitted run keeps its place while it waits, is paused or changes its owner. Its end and its deletion free the place. A run
 *   that is reopened after its end takes its place again, even above the limit. Mail makes a queued run ready, so that it can be
 *   cancelled: its lease has `isQueued`, and when its owner releases it, it is queued again. It keeps its turn: until that release no
 *   run behind it is admitted, and before a worker takes it, it is admitted like a run without mail. The limits of the run that is
 *   next count.
 *   A deleted run no longer counts for its rate.
 * - L18 A release as `queued` stores the limits of a run that was created without a `flow`, and from then on L17 applies to it. The first
 *   worker that hosts the workflow of a run that was started by name does this before it starts any task.
 * - L19 A run whose `flow` names an `object` is a call of one of its keys. Of the calls of a key that are not shared, one at a time is
 *   admitted, in the order of L17; a shared call needs no admission. An event `state_changed` stores the state of the key in the
 *   transaction of its commit, as the record of `stateRecord` in the tenant of the run. It stays when the run is deleted.
 * - L20 A new run whose `flow` has a `collect` is queued until its `dueAt`, before its other limits. If such a run of the same tenant,
 *   user, name and key is queued and takes the start (`joinStarts`), creating another one adds the input to it instead, in one
 *   transaction: the creation is `steered`, and the id of the submission counts as its mail. A run that has an owner or has got
 *   mail takes none. From its admission on, `RunRecord.flow` does not change.
 * - L21 An event `run_bind` binds its run to a machine, in the transaction of its commit; the first one counts. A claim with a `host`
 * leaves out runs that are bound to another machine. While no worker has such a run, it is `pending` and waits for `host`.
 */
export interface Leases {
  /**
   * Registers a worker as alive. A worker that is not registered counts as dead; some stores detect a dead process
   * themselves. L6: a worker that registers under the name of a dead worker does not inherit its runs; they become
   * ready for any worker. Registering twice has no effect, except that a later `onLost` replaces an earlier one.
   */
  enlist(workerId: string, options?: EnlistOptions): Promise<void>;
  /** Unregisters a worker. Its runs become ready for other workers. */
  dismiss(workerId: string): Promise<void>;
  /** Claims up to `limit` ready runs. */
  claim(options: ClaimOptions): MaybePromise<readonly Lease[]>;
  /**
   * Takes a run from its current owner. Returns `undefined` if the run does not exist, or has ended and has no mail.
   */
  seize(runId: RunId, workerId: string): Promise<Lease | undefined>;
  /** J3: verifies the lease before an effect starts. Rejects with `lease_lost`. */
  check(lease: Lease): Promise<void>;
  /** Rejects with `lease_lost`. Returns `undefined` if the release completed synchronously. */
  release(lease: Lease, rest: Rest): Promise<void> | undefined;
  /** L8: epoch milliseconds, or `null` if no suspended run waits for a later time. */
  nextWakeAt(now: number): MaybePromise<number | null>;
  /**
   * L13: whether this store has registered the worker and knows, without a query, that the registration holds. A store with
   * signs of life returns `false` while the last confirmed one is too old.
   */
  isConfirmed(workerId: string): boolean;
  /** L14: number of ready runs at this time (epoch milliseconds), at most `limit`. */
  countReady(now: number, limit: number): MaybePromise<number>;
  /** L7: for each of these lost owners, whether its process is known to have ended, and no sign of life has come since. */
  haveEnded(owners: readonly LostOwner[]): MaybePromise<readonly boolean[]>;
  /** L16: ids of ready runs, also of those that a dead worker has left. */
  findReady(options: ReadyOptions): MaybePromise<readonly RunId[]>;
}
