import type { Fault } from "../base/fault.ts";
import { agentNameOf, type AgentId, type RunId } from "../base/identity.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";
import type { RunFlow } from "../limits/flow-control.ts";
import type { LostOwner } from "../run/crash-loop.ts";
import type { RunRecord } from "../run/run-record.ts";

/**
 * The right of one worker to write to one run. A later lease of the same run has a higher epoch and makes this one
 * invalid (J3).
 *
 * @advanced
 */
export interface Lease {
  readonly runId: RunId;
  readonly epoch: number;
  readonly workerId: string;
  /**
   * L7: number of workers in a row that were lost while they owned the run, and neither committed nor released it.
   * Absent if no worker was lost.
   */
  readonly recoveries?: number;
  /**
   * L7: the first of the lost workers in a row. It began with the run in the state of its last commit, and could
   * execute it.
   */
  readonly lostOwner?: LostOwner;
  /**
   * L7: time at which the last of the lost workers was found to be lost, in epoch milliseconds. Absent if no worker
   * was lost.
   */
  readonly lostAt?: number;
  /** L17: present if the run has mail but still waits for its turn, so that its owner must not start a task. */
  readonly isQueued?: true;
}

/**
 * State in which an owner releases a run: ended, ready for the next owner, or suspended until mail arrives or the
 * time `wakeAt` (epoch milliseconds). `unloaded` is `suspended` for a run that the owner did not load, because
 * loading it may be what kills processes (L7). `queued` sets the limits of a run (L18).
 *
 * @advanced
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
   * J9: version of the agent: only runs that this version started are taken. `null` stands for runs of an agent
   * that declares no version. If absent, runs of any version are taken.
   */
  readonly version?: string | null;
}

/** All agents of a name that a worker hosts, with any key and of any version. */
export interface AgentsOfName {
  readonly agentName: string;
}

/** Whether a worker that hosts these agents may execute the run. @advanced */
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
  /** Whether suspended runs are claimed too, because the engine may have lost the time at which they wake up. */
  readonly suspended: boolean;
  /** Whether runs are claimed whose owner still has a valid lease but whose process is known to have ended. */
  readonly ended: boolean;
}

/** Which runs `Leases.claim` may claim, and for whom. @advanced */
export interface ClaimOptions {
  readonly workerId: string;
  /** Maximum number of runs to claim. */
  readonly limit: number;
  /** If given, only runs of these agents are claimed. */
  readonly agents?: readonly (AgentVersion | AgentsOfName)[];
  /** L10: if given, only these runs are claimed. For an engine that itself decides which run is executed. */
  readonly only?: readonly RunId[];
  /**
   * L15: together with `only`, allows the claim of runs that are not ready. For an engine whose server sends each
   * run to only one worker at a time. Default: only ready runs are claimed.
   */
  readonly takeOver?: TakeOver;
  /** Runs that are not claimed, because the worker knows that another version of the agent must execute them (J9). */
  readonly except?: readonly RunId[];
  /** L21: name of the machine of the worker. If absent, runs that are bound to any machine can be claimed. */
  readonly host?: string;
  /** Current time in epoch milliseconds. Suspended runs whose `wakeAt` has passed are ready. */
  readonly now: number;
}

/** Which ready runs to find. @advanced */
export interface ReadyOptions {
  /** If given, only runs of these agents are returned. */
  readonly agents?: readonly (AgentVersion | AgentsOfName)[];
  /** Current time in epoch milliseconds. */
  readonly now: number;
  /** Maximum number of runs. */
  readonly limit: number;
  /** Id of a run: only later runs are returned. If absent or unknown, the result begins with the oldest run. */
  readonly after?: RunId;
}

export interface EnlistOptions {
  /**
   * L12: called if the registration of the worker is lost, for example because its lock file was deleted. Other
   * workers may have taken over its runs. With the code `store_unavailable`, the store has registered the worker
   * again. With `already_exists`, another worker has registered under its name, so that it cannot claim runs any
   * more. With `store_lost`, the store itself no longer exists, so that the worker must stop. If absent, `claim`
   * rejects with the fault.
   */
  readonly onLost?: (fault: Fault) => void;
}

/**
 * The ownership of runs. Every store passes `leaseContract`, which checks:
 *
 * - L1 At most one owner of a run can write: claiming or seizing the run raises its epoch, and the store then
 *   refuses writes of the previous owner.
 * - L2 `claim` returns ready runs: new, released as ready, woken by mail or by a time after their release, or left
 *   by a dead worker. An ended run is ready only if it has mail. A run whose owner is alive is never ready.
 * - L3 A run that is released with unread mail is ready, also if it has ended, so that no mail is overlooked.
 * - L4 A lost lease cannot release the run.
 * - L5 If more runs are ready than `limit`, tenants are served in turn; the runs without a tenant count as one
 *   tenant. Within a tenant, the higher priority comes first. At equal priority, each pair of user and agent is
 *   served in turn, so that many runs of one do not delay the runs of another. Within a pair, the run that has been
 *   ready longest comes first.
 * - L6 Runs belong to a worker process, not to its name: see `enlist`.
 * - L7 A lease shows whether the owners before it were lost, so that a run that ends every process that executes it
 *   can be recognised: `recoveries` grows each time a dead worker leaves the run, and starts again after a commit
 *   and after a release that is not `unloaded`. `lostOwner` is the first worker of the count. `haveEnded` says
 *   which of the lost owners' processes are known to have ended; a later sign of life of the worker changes the
 *   answer. `RunRecord.recoveries` is the total, which never starts again.
 * - L8 `nextWakeAt` returns the earliest `wakeAt` after `now` of all suspended runs, so that a worker can wake them
 *   on time.
 * - L9 A run that is created with a later `startAt` is suspended until that time. Mail makes it ready earlier, so
 *   that it can be cancelled; its owner starts no task before that time.
 * - L10 `claim` with `only` returns those of the given runs that are ready, in the given order, up to `limit`.
 *   Tenants, priorities and turns do not matter; all other rules apply.
 * - L11 An agent name in `agents` matches the agents of this name with any key and of any version.
 * - L12 The store calls `onLost` when it finds that a registration was lost, before the next `claim` of the worker
 *   returns.
 * - L13 `isConfirmed` is true only while no other worker can have taken over the runs of the worker.
 * - L14 `countReady` counts the runs that a claim of any agent would return. Runs of dead workers may be missing.
 * - L15 `claim` with `only` and `takeOver` never takes a run from a live worker: it rejects with `run_owned`, and
 *   the caller tries again until the owner has released the run or its lease has ended. With `suspended` it also
 *   returns suspended runs, which does not count as a recovery. With `ended` it does not wait for the lease of a
 *   worker whose process is known to have ended: it returns the run, which counts as a recovery (L7), and refuses
 *   later writes of that worker. A store that cannot know whether the process has ended waits for the lease.
 * - L16 `findReady` returns the runs that a claim would return, the oldest first, and changes nothing: no epoch, no
 *   owner, no turn and no number of recoveries.
 * - L17 A new run with a `flow` is ready when its limits admit it; until then it is queued, `pending`, and waits
 *   for `queue`. Its tenant has at most `concurrency.limit` admitted runs of the key that have not ended, and at
 *   most `rate.limit` runs of the key are admitted within any span of `rate.perMs`. `claim` checks these limits in
 *   the transaction that admits the run, so that they hold over all workers. A run first waits for a place among
 *   the runs of its concurrency key, then for its rate. Among the runs of a key, a higher priority comes first,
 *   then the run that entered the queue first: at its creation, or at its start time (L9) if that is later. The
 *   runs of one key never delay those of another. An admitted run keeps its place while it waits, is paused or
 *   changes its owner. Its end and its deletion free the place. A run that is reopened after its end takes its
 *   place again, even above the limit. Mail makes a queued run ready, so that it can be cancelled: its lease has
 *   `isQueued`, and when its owner releases it, it is queued again. It keeps its turn: until that release, no later
 *   run of the key is admitted. If no worker takes it for its mail, it is admitted like a run without mail. The
 *   limits of the next run in the queue apply. A deleted run no longer counts for its rate.
 * - L18 A release as `queued` stores the limits of a run that was created without a `flow`, and from then on L17
 *   applies to it. The first worker that hosts the workflow of a run that was started by name does this before it
 *   starts any task.
 * - L19 A run whose `flow` names an `object` is a call of one of its keys. Of the calls of a key that are not
 *   shared, one at a time is admitted, in the order of L17; a shared call needs no admission. An event
 *   `state_changed` stores the state of the key in the transaction of its commit, as the record of `stateRecord` in
 *   the tenant of the run. The record remains when the run is deleted.
 * - L20 A new run whose `flow` has a `collect` is queued until its `dueAt`, before its other limits. If such a run
 *   of the same tenant, user, name and key is queued and takes the start (`joinStarts`), creating another one adds
 *   the input to it instead, in one transaction: the creation is `steered`, and the id of the submission counts as
 *   its mail. A run that has an owner or mail accepts no further input. From its admission on, `RunRecord.flow`
 *   does not change.
 * - L21 An event `run_bind` binds its run to a machine, in the transaction of its commit; the first one counts. A
 *   claim with a `host` leaves out runs that are bound to another machine. While no worker has such a run, it is
 *   `pending` and waits for `host`.
 *
 * @advanced
 */
export interface Leases {
  /**
   * Registers a worker as alive. A worker that is not registered counts as dead; some stores detect a dead process
   * themselves. L6: a worker that registers under the name of a dead worker does not get its runs; they become
   * ready for any worker. A second registration has no effect, except that its `onLost` replaces the earlier one.
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
  /**
   * Releases a run, so that its lease ends. Rejects with `lease_lost`. Returns `undefined` if the release completed
   * synchronously.
   */
  release(lease: Lease, rest: Rest): Promise<void> | undefined;
  /**
   * L8: returns the next time at which a suspended run must wake up, in epoch milliseconds. `null` if no suspended
   * run waits for a later time.
   */
  nextWakeAt(now: number): MaybePromise<number | null>;
  /**
   * L13: whether the store knows without a query that its registration of the worker is valid. A store with signs
   * of life returns `false` if the last confirmed one is too old.
   */
  isConfirmed(workerId: string): boolean;
  /** L14: returns the number of ready runs at this time (epoch milliseconds), at most `limit`. */
  countReady(now: number, limit: number): MaybePromise<number>;
  /**
   * L7: returns for each of these lost owners whether its process is known to have ended and has sent no sign of
   * life since then.
   */
  haveEnded(owners: readonly LostOwner[]): MaybePromise<readonly boolean[]>;
  /** L16: returns the ids of ready runs, including runs that a dead worker has left. */
  findReady(options: ReadyOptions): MaybePromise<readonly RunId[]>;
}
