import type { RunRecord } from "../run/run-record.ts";
import type { Commit } from "./commit.ts";
import type { RunId } from "../base/identity.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";
import type { ClaimOptions, Lease, Rest } from "./lease.ts";
import type { Mail } from "./mailbox.ts";
import type { ApprovalPage, ApprovalQuery } from "../run/approval.ts";
import type { RunChangeList, RunCountQuery, RunPage, RunQuery, RunSummary } from "../run/run-summary.ts";
import type { TenantScope } from "../run/run-meta.ts";

/** S5: condition for the creation of a run. It allows at most one unfinished run of an agent in a session. @advanced */
export interface SingleFlight {
  /**
   * Mail that the unfinished run gets, instead of the start of a second run. Its id begins with `submit `. A mail
   * with the same id is put only once, even if that run has ended since then.
   */
  readonly steering: Omit<Mail, "runId">;
  /** Whether a running run gets the mail too. If `false`, only a run that waits or is paused gets it. */
  readonly always: boolean;
  /** S6: the scope to which the session and its unfinished run must belong. If absent, any session is used. */
  readonly scope?: TenantScope;
}

/**
 * A run that is created together with a commit of another run. If it has a `flight` and its agent has an unfinished
 * run in the session, that run gets the mail instead. A run whose id exists is not created again.
 */
export interface Submission {
  readonly run: RunRecord;
  readonly first: Commit;
  readonly flight?: SingleFlight;
  /** S5: whether no run is created if its agent has an unfinished run in the session. Default: `false`. */
  readonly isAlone?: boolean;
}

/** The outcome of creating a run. @advanced */
export type Creation =
  /** `lease` is present if the run was claimed in the same transaction. */
  | { readonly kind: "created"; readonly lease?: Lease }
  /** A run with this id already exists. Nothing changed. */
  | { readonly kind: "exists" }
  /**
   * I5: another run holds a message with which this run was to start, or is being created with it. Nothing changed.
   */
  | { readonly kind: "taken" }
  /** The agent has an unfinished run in the session, which got the mail. */
  | { readonly kind: "steered"; readonly runId: RunId }
  /**
   * The agent has an unfinished run in the session that does not take the mail, or the run is a compaction and the
   * session is not idle (S5). Nothing changed.
   */
  | { readonly kind: "busy"; readonly run: RunSummary }
  /** S6: the session is outside the scope of the condition. Nothing changed. */
  | { readonly kind: "foreign" };

/**
 * The journals of all runs. An owner writes only through commits: the changes that a commit holds for the event
 * log, sessions, mailboxes, inboxes and topics are applied with it, or not at all. Every store passes
 * `journalContract`, which checks:
 *
 * - J1 The first write wins: appending under a number that is taken changes nothing and returns the stored commit.
 *   A writer that does not know whether its write arrived may therefore write again.
 * - J3 A write with a lost lease throws `lease_lost`, and nothing is written.
 * - J10 A step whose value is not JSON is refused with `not_json`, and nothing is written.
 * - A commit whose number leaves a gap is refused with `invalid_argument`.
 * - S5 With a `flight`, the submission of another user or tenant never becomes steering, because a run acts in the
 *   name of its own user. Whether a run starts, is refused or becomes steering is decided in the transaction that
 *   creates it, also under concurrent submissions. Submissions that are appended with a commit take effect if and
 *   only if the commit is stored.
 * - S5 A run of kind `compaction` excludes every other run of its session. It is created only in an idle session.
 *   Until it has ended, other runs can be created there, but no worker can claim them: they are `pending` and wait
 *   for `compaction`, also if they get mail. A compaction never gets the mail of a flight.
 * - S6 A call with a `scope` behaves as if the runs and sessions of other tenants and users did not exist: `find`
 *   returns `undefined`, `collect` does not delete them, and a submission with a `flight` starts or steers no run
 *   in their sessions. The store's queries check the scope, in the transaction that reads or writes.
 * - E1 After a commit with `erases`, no reader sees the text of those tasks, even after a crash. The hash chain
 *   remains valid.
 * - K1 A run has ended once a commit holds `run_end`, and is unfinished again once a commit reopens a task. Before
 *   its end it has the status of the last commit with a `standing`; it is `pending` while it is ready and not
 *   paused, also if it was running and its owner is dead. `list` and `summary` report the status from that commit
 *   on, with the same words.
 * - K2 `list` returns the newest runs first, and each run once, however many runs are created or deleted between
 *   two pages. Sorted by cost, it returns each run once whose cost does not change between the pages.
 * - K3 `list` and `summary` report the usage of a run from its last commit with `spent` or `run_end`. The cost of
 *   the call does not grow with the length of the run.
 * - K4 A question is open from the commit with its `approval_request` on, until a commit holds its
 *   `approval_decision`, the end or the `continue` of its task, or the record of a race in whose branch it was
 *   asked. `approvals` returns each open question once, the one that has waited longest first, and costs O(open
 *   questions).
 * - K5 `changes` returns each run whose summary changed after the position, because it was created or its status,
 *   end, usage, number of recoveries or last commit changed, also through the death of its owner. The call costs
 *   O(changed runs and runs with an owner), whatever the number of other runs. A deleted run is not reported.
 * - K6 `count` returns the number of runs that `list` would return in all, up to its `limit`.
 *
 * @advanced
 */
export interface Journal {
  /**
   * Creates a run with its first commit. Without `flight` the run is created even if its session has other
   * unfinished runs, which forks and activations need.
   */
  create(run: RunRecord, first: Commit, flight?: SingleFlight): MaybePromise<Creation>;
  /**
   * Creates a run like `create`. If the run matches `claim` and no other run is ready (L5), the same transaction
   * claims it for a worker. Optional: a store in which a transaction is expensive implements it to save one
   * transaction per run.
   */
  createAndClaim?(
    run: RunRecord,
    first: Commit,
    flight: SingleFlight | undefined,
    claim: ClaimOptions,
  ): Promise<Creation>;
  /**
   * Returns the record of a run. A record hardly changes: its `recoveries` grow, and an erasure of the root task
   * empties its `metadata`. S6: a run outside the scope is not found.
   */
  find(runId: RunId, scope?: TenantScope): Promise<RunRecord | undefined>;
  /**
   * K1: returns the run as `list` does, with its current status. The cost does not grow with the length of the run.
   */
  summary(runId: RunId): Promise<RunSummary | undefined>;
  list(query?: RunQuery): Promise<RunPage>;
  /** K6: counts runs. */
  count(query?: RunCountQuery): Promise<number>;
  /** K5: returns the runs that have changed after the position. Without a position, returns only the current one. */
  changes(after?: string): Promise<RunChangeList>;
  /** K4: returns the questions of all runs that wait for a person. */
  approvals(query?: ApprovalQuery): Promise<ApprovalPage>;
  /**
   * Stores a commit and returns the commit that is stored under its number (J1). The submissions are applied with
   * the commit, in this order, after the changes of the commit itself. Then the runs that they create receive the
   * mail of the commit (P6).
   */
  append(lease: Lease, commit: Commit, submissions?: readonly Submission[]): MaybePromise<Commit>;
  /**
   * Does `append` and `Leases.release` in one transaction. Optional: a store in which a transaction is expensive
   * implements it to save one transaction per run.
   */
  appendAndRelease?(
    lease: Lease,
    commit: Commit,
    submissions: readonly Submission[] | undefined,
    rest: Rest,
  ): Promise<Commit>;
  /** Reads the commits from this number on that exist at the time of the call, then ends. */
  read(runId: RunId, from?: number): AsyncIterable<Commit>;
  /**
   * Calls `visit` with every commit of the run, in order, and returns the run. An owner uses it to rebuild the
   * run's state. Unlike `read` it can complete synchronously and needs no promise per commit. Rejects with
   * `not_found`.
   */
  replay(runId: RunId, visit: (commit: Commit) => void): MaybePromise<RunRecord>;
  /**
   * Deletes the run with its events, mail and the contents that no other run or session owns. Its session keeps the
   * visible entries; hidden entries are deleted, because no run can resume them. Does nothing if the run does not
   * exist.
   */
  delete(runId: RunId): Promise<void>;
  /**
   * Deletes the runs that ended before this time (epoch milliseconds), also runs that could be resumed. Runs with
   * an owner, runs with unread mail and the runs that `except` returns are kept. Returns the number of deleted
   * runs.
   */
  collect(options: CollectOptions): Promise<number>;
}

export interface CollectOptions {
  /** Epoch milliseconds. */
  readonly endedBefore: number;
  /** If given, only these runs can be deleted. */
  readonly only?: readonly RunId[];
  /** Called before each batch of deletions. */
  readonly except?: () => readonly RunId[];
  /** S6: deletes only runs in this scope. */
  readonly scope?: TenantScope;
}
