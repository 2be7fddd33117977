import type { RunRecord } from "../run/run-record.ts";
import type { Commit } from "./commit.ts";
import type { RunId } from "../base/identity.ts";
import type { ClaimOptions, Lease, Rest } from "./lease.ts";
import type { Mail } from "./mailbox.ts";
import type { RunPage, RunQuery, RunSummary } from "../run/run-summary.ts";

/** A run as it stands. */
export interface RunHistory {
  readonly run: RunRecord;
  readonly commits: readonly Commit[];
}

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
  /** Without `flight` whatever else is in the session: a fork, an activation. */
  create(run: RunRecord, first: Commit, flight?: SingleFlight): Promise<Creation>;
  /** The same, over when it returns. A store that cannot do it has none. */
  createNow?(run: RunRecord, first: Commit, flight?: SingleFlight): Creation;
  /**
   * The same as `create`, for a worker that has room for the run: it is claimed in the same breath if it is one that `claim` is for and no
   * other run waits to be (L5). A store that cannot do it has none.
   */
  createAndClaim?(
    run: RunRecord,
    first: Commit,
    flight: SingleFlight | undefined,
    claim: ClaimOptions,
  ): Promise<Creation>;
  find(runId: RunId): Promise<RunRecord | undefined>;
  list(query?: RunQuery): Promise<RunPage>;
  /** The commit that stands under this number. With it, after all that it changes itself, what is submitted, in this order. */
  append(lease: Lease, commit: Commit, submissions?: readonly Submission[]): Promise<Commit>;
  /**
   * The same, over when it returns: where nothing has to be waited for, nobody waits. `undefined`: not at once, and nothing was done. Throws
   * what `append` rejects with. A store that cannot do it has none.
   */
  appendNow?(lease: Lease, commit: Commit): Commit | undefined;
  /** As `append` and then `Leases.release`, both or neither. A store that cannot do it has none. */
  appendAndRelease?(
    lease: Lease,
    commit: Commit,
    submissions: readonly Submission[] | undefined,
    rest: Rest,
  ): Promise<Commit>;
  /** What has been committed, from `number` on; ends there. */
  read(runId: RunId, from?: number): AsyncIterable<Commit>;
  /** The same, as many at a time as are read at once: for whoever wants all of them. */
  readPages?(runId: RunId): AsyncIterable<Iterable<Commit>>;
  /** The run and all that has been committed, where nothing has to be waited for; else `undefined`, as for a run that is not there. A store that cannot do it has none. */
  readNow?(runId: RunId): RunHistory | undefined;
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
