import type { RunRecord } from "../run/run-record.ts";
import type { Commit } from "./commit.ts";
import type { RunId } from "../base/identity.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";
import type { ClaimOptions, Lease, Rest } from "./lease.ts";
import type { Mail } from "./mailbox.ts";
import type { RunPage, RunQuery, RunSummary } from "../run/run-summary.ts";

/** S5: at most one unfinished run of an agent in a session. */
export interface SingleFlight {
  /** What is said to that run instead of starting another. Its id begins with `submit `; said once, also when that run has ended since. */
  readonly steering: Omit<Mail, "runId">;
  /** Whether one at work is told as well, and not only one that is suspended. */
  readonly always: boolean;
}

/** A run that starts unless its agent has an unfinished one in its session, which then has the mail. */
export interface Submission {
  readonly run: RunRecord;
  readonly first: Commit;
  readonly flight: SingleFlight;
}

/** What came of creating a run. */
export type Creation =
  /** `lease`: it was claimed along with it. */
  | { readonly kind: "created"; readonly lease?: Lease }
  /** A run of this id is there; nothing changed. */
  | { readonly kind: "exists" }
  /** I5: another run has a message that it is to begin with; nothing changed. */
  | { readonly kind: "taken" }
  /** The agent has an unfinished run in the session, which has the mail. */
  | { readonly kind: "steered"; readonly runId: RunId }
  /** The agent is at work in the session; nothing changed. */
  | { readonly kind: "busy"; readonly run: RunSummary };

/**
 * The durable memory of runs, and the one door by which an owner writes: what a commit holds for the event log, sessions,
 * mailboxes, inboxes and topics is applied with it or not at all. Every store passes `journalContract`, which checks:
 *
 * - J1 First writer wins: appending under a number that is taken changes nothing and returns the commit that stands there, so a
 *   writer that does not know whether its write arrived may write again.
 * - J3 A writer whose lease was lost is refused with `lease_lost`, and nothing is written.
 * - J10 A step whose value is not JSON is refused with `not_json`, and nothing is written.
 * - A number that leaves a gap is refused with `invalid_argument`.
 * - S5 With a `flight`, what another user or tenant submits is never said to a run: that acts in its own user's name. Whether the run starts, is refused or becomes steering is decided with its commit, whoever else submits. What is
 *   submitted with a commit is so exactly when the commit stands.
 * - E1 After a commit with `erases` nobody reads the words of those tasks any more, whatever dies; the events' chain still holds.
 * - K1 A run has ended when a commit tells `run_end`, and goes on again when one reopens a task; `list` says so from that commit on.
 * - K2 `list` gives the newest first, each once however many come or go between two pages.
 */
export interface Journal {
  /** If `flight` is absent, the run is created whatever other runs its session has: a fork or an activation does that. */
  create(run: RunRecord, first: Commit, flight?: SingleFlight): MaybePromise<Creation>;
  /**
   * Like `create`, and claims the run for a worker in the same transaction if the run matches `claim` and no other run is ready
   * (L5). Optional: a store in which a transaction is expensive implements it to save one transaction per run.
   */
  createAndClaim?(
    run: RunRecord,
    first: Commit,
    flight: SingleFlight | undefined,
    claim: ClaimOptions,
  ): Promise<Creation>;
  find(runId: RunId): Promise<RunRecord | undefined>;
  list(query?: RunQuery): Promise<RunPage>;
  /**
   * Returns the commit that is stored under this number (J1). The submissions are applied with the commit, in this order, after
   * the changes of the commit itself.
   */
  append(lease: Lease, commit: Commit, submissions?: readonly Submission[]): MaybePromise<Commit>;
  /**
   * `append` and `Leases.release` in one transaction. Optional: a store in which a transaction is expensive implements it to
   * save one transaction per run.
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
   * Calls `visit` with every commit of the run, in order, and returns the run. An owner rebuilds the run's state with it. Apart
   * from `read` because it can complete synchronously, and does not wait for a promise per commit. Rejects with `not_found`.
   */
  replay(runId: RunId, visit: (commit: Commit) => void): MaybePromise<RunRecord>;
  /**
   * With its events, mail and blobs. The session keeps what is visible there; what never became so goes, since nobody can go on with
   * it. Done nothing if it is not there.
   */
  delete(runId: RunId): Promise<void>;
  /**
   * Deletes the runs that ended before this time (epoch milliseconds), also those that could still be resumed, but for those that have an
   * owner or unread mail. How many.
   */
  collect(options: { readonly endedBefore: number }): Promise<number>;
}
