import type { Event } from "../events/event.ts";
import type { HeadcountCommand } from "../limits/headcount.ts";
import type { AgentId, TaskId } from "../base/identity.ts";
import type { InboxChange } from "./inbox.ts";
import type { LedgerCommand } from "../limits/ledger.ts";
import type { Mail } from "./mailbox.ts";
import type { Resolution } from "../run/resolution.ts";
import type { SessionChange } from "../sessions/sessions.ts";
import type { StepAddress } from "../run/step-address.ts";
import type { StepOpening, StepRecord } from "../run/step-record.ts";
import type { TaskChange } from "../run/task.ts";
import type { TopicChange } from "./topics.ts";

/**
 * What one step leaves behind, all or nothing: one row of the run's journal. A run's state is the fold of its commits; seats and
 * money are kept as the commands to their state machines, so that an owner rebuilds them by applying the same again.
 */
export interface Commit {
  /** From 0 within the run, without gaps. */
  readonly number: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly opens?: readonly StepOpening[];
  readonly steps?: readonly StepRecord[];
  /** J5: records that `resume` or `topUp` takes back, so that the step runs anew. */
  readonly voids?: readonly { readonly taskId: TaskId; readonly address: StepAddress }[];
  /** E1: their seqs follow on from the commit before. */
  readonly events?: readonly Event[];
  readonly tasks?: readonly TaskChange[];
  /** Values that came for waits; each is taken by the first `wait` step recorded under its name. */
  readonly resolves?: readonly Resolution[];
  readonly headcount?: readonly HeadcountCommand[];
  /** The next reservation rides here with the record before it (B3). */
  readonly ledger?: readonly LedgerCommand[];
  readonly sessions?: readonly SessionChange[];
  /** What these tasks said goes from the run's journal and log: at once for every reader, from the store a little later. */
  readonly erases?: readonly Erasure[];
  /** All mail up to this place is consumed (P3). */
  readonly mailThrough?: number;
  /** For other runs, such as a reply; dropped where the run is gone. */
  readonly mail?: readonly Mail[];
  readonly inbox?: readonly InboxChange[];
  readonly topics?: readonly TopicChange[];
}

/** Retention NONE: what this task said and was told is to go; what it did, and its outcome, stays. */
export interface Erasure {
  readonly taskId: TaskId;
  readonly agentId: AgentId;
}
