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
 * One atomic row of a run's journal. Applying all commits in order gives the state of the run. Seats and money are
 * stored as commands: a new owner applies the same commands again to compute them.
 *
 * @advanced
 */
export interface Commit {
  /** Number of the commit, counted from 0 within the run without gaps. */
  readonly number: number;
  /** Time of the commit in epoch milliseconds. */
  readonly at: number;
  readonly opens?: readonly StepOpening[];
  /**
   * B1: exact counts of input tokens for steps that have begun. A count is no longer needed when the step is
   * recorded.
   */
  readonly counts?: readonly TokenCount[];
  /** J11: the parts of model requests that do not follow from other records. */
  readonly requests?: readonly SentRequest[];
  readonly steps?: readonly StepRecord[];
  /** J5: addresses of records that `resume` or `topUp` makes invalid, so that their steps run again. */
  readonly voids?: readonly { readonly taskId: TaskId; readonly address: StepAddress }[];
  /** E1: the events of the commit. Their sequence numbers continue those of the previous commit without a gap. */
  readonly events?: readonly Event[];
  readonly tasks?: readonly TaskChange[];
  /** Values that end waits. The first `wait` step that is recorded under the name takes the value. */
  readonly resolves?: readonly Resolution[];
  readonly headcount?: readonly HeadcountCommand[];
  /**
   * B3: commands to the ledger. The reservation of the next call is in the commit that contains the record of the
   * previous step.
   */
  readonly ledger?: readonly LedgerCommand[];
  readonly sessions?: readonly SessionChange[];
  /** K1: the status of the run from this commit on. Absent if it does not change. A new run is `running`. */
  readonly standing?: RunStanding;
  /**
   * K3: what the run has used up to this commit. Present if it has changed since the last time, in a commit with
   * `usage` and in one after which the run waits or is paused. In the commit that ends the run, the event `run_end`
   * contains it instead.
   */
  readonly spent?: RunSpend;
  /**
   * Tasks whose text is erased from the journal and the log. Readers no longer see it from this commit on; the
   * storage deletes it soon afterwards.
   */
  readonly erases?: readonly Erasure[];
  /**
   * The application's own history store has deleted what it kept of the run. If the run ends again later, the
   * deletion is due again.
   */
  readonly historyCleared?: true;
  /** P3: consumes all mail up to this place. */
  readonly mailThrough?: number;
  /**
   * U1: what the run has spent since the last commit with `usage`. Present, if there is anything new, in a commit
   * that suspends, pauses or ends the run. Also present in a commit that ends a call of `ctx.metered`, because a
   * live program may have no end. In a run with a cap share (B7), it is present in every commit that settles a
   * call.
   */
  readonly usage?: readonly UsageDelta[];
  /**
   * U8: the amount of its cap shares that the run still holds, in nano-dollars by UTC day. Only in a commit with
   * `usage`, which returns the rest to the cap. If absent, the commit returns all cap shares.
   */
  readonly holds?: Readonly<Record<string, number>>;
  /** Mail to other runs, such as a reply. Mail to a run that no longer exists is dropped. */
  readonly mail?: readonly Mail[];
  readonly inbox?: readonly InboxChange[];
  readonly topics?: readonly TopicChange[];
}

/**
 * Erases the text of a task with the retention `NONE`: its input and its messages. Its actions and its outcome are
 * kept.
 *
 * @advanced
 */
export interface Erasure {
  readonly taskId: TaskId;
  readonly agentId: AgentId;
}
