import type { Event } from "../events/event.ts";
import type { HeadcountCommand } from "../limits/headcount.ts";
import type { AgentId, TaskId } from "../base/identity.ts";
import type { InboxChange } from "./inbox.ts";
import type { LedgerCommand } from "../limits/ledger.ts";
import type { Mail, TopicChange } from "./mailbox.ts";
import type { Resolution } from "../run/approval.ts";
import type { RunSpend, RunStanding } from "../run/run-record.ts";
import type { SessionChange } from "../sessions/sessions.ts";
import type { StepAddress, StepOpening, StepRecord, TokenCount } from "../run/step.ts";
import type { SentRequest } from "../run/sent-request.ts";
import type { TaskChange } from "../run/task.ts";
import type { UsageDelta } from "../limits/usage-delta.ts";

/**
 * One atomic row of a run's journal. The state of a run is the fold of its commits. Seats and money are stored as
 * commands to their state machines: an owner rebuilds them by applying the same commands again.
 */
export interface Commit {
  /** Counts from 0 within the run, without gaps. */
  readonly number: number;
  /** Time of the commit in epoch milliseconds. */
  readonly at: number;
  readonly opens?: readonly StepOpening[];
  /** B1: counts of input tokens. The record of the step ends their use. */
  readonly counts?: readonly TokenCount[];
  /** J11: what model calls are sent, where it does not follow from other records. */
  readonly requests?: readonly SentRequest[];
  readonly steps?: readonly StepRecord[];
  /** J5: records that `resume` or `topUp` voids, so that their steps run again. */
  readonly voids?: readonly { readonly taskId: TaskId; readonly address: StepAddress }[];
  /** E1: the seqs continue those of the previous commit without a gap. */
  readonly events?: readonly Event[];
  readonly tasks?: readonly TaskChange[];
  /** Values for waits. The first `wait` step recorded under the name takes the value. */
  readonly resolves?: readonly Resolution[];
  readonly headcount?: readonly HeadcountCommand[];
  /** B3: the reservation of the next call is in the commit that holds the record of the previous step. */
  readonly ledger?: readonly LedgerCommand[];
  readonly sessions?: readonly SessionChange[];
  /** K1: the status of the run from this commit on. Absent if it does not change. A new run is `running`. */
  readonly standing?: RunStanding;
  /**
   * K3: what the run has used up to this commit. Present in a commit with `usage` and in one after which the run waits or
   * is paused, if it has changed since the last one. The commit that ends the run has it in its `run_end` event instead.
   */
  readonly spent?: RunSpend;
  /**
   * Tasks whose text is erased from the journal and the log: immediately for every reader, and soon afterwards from the
   * storage.
   */
  readonly erases?: readonly Erasure[];
  /** The application's own history store has deleted what it kept of the run. A later `run_end` makes it due again. */
  readonly historyCleared?: true;
  /** P3: consumes all mail up to this place. */
  readonly mailThrough?: number;
  /**
   * U1: what the run spent since the last commit with `usage`. Present in a commit that suspends, pauses or ends the run, in
   * one that ends a call of `ctx.metered`, because a live program may have no end, and in a run with a cap share (B7) in
   * one that settles a call, if there is anything new.
   */
  readonly usage?: readonly UsageDelta[];
  /**
   * U8: what the run still holds of its cap shares, in nano-dollars by UTC day. Only in a commit with `usage`, which
   * returns the rest. If absent, it returns all of them.
   */
  readonly holds?: Readonly<Record<string, number>>;
  /** Mail to other runs, such as a reply. Mail to a run that no longer exists is dropped. */
  readonly mail?: readonly Mail[];
  readonly inbox?: readonly InboxChange[];
  readonly topics?: readonly TopicChange[];
}

/** Retention NONE: the input and the messages of this task are erased. Its actions and its outcome are kept. */
export interface Erasure {
  readonly taskId: TaskId;
  readonly agentId: AgentId;
}
