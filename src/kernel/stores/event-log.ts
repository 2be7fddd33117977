import type { CancelSignal } from "../base/cancel-signal.ts";
import type { Delta } from "../messages/delta.ts";
import type { Event, EventType } from "../events/event.ts";
import type { RunId } from "../base/identity.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";
import type { Lease } from "./lease.ts";
import type { Lifetime } from "../base/lifetime.ts";

export type LogVerdict =
  | {
      readonly ok: true;
      readonly events: number;
      readonly head: string;
      readonly keyed: boolean;
      /** Events after the head that was asked for; `null` when none was. */
      readonly sinceHead: number | null;
    }
  /** `seq`: of the first event that cannot be trusted any more. */
  | { readonly ok: false; readonly seq: number; readonly problem: string };

export interface TailOptions {
  readonly fromSeq?: number;
  /** Only events of these types, and no deltas: who waits for little is not woken for the rest. */
  readonly types?: readonly EventType[];
  /** Ends the tail. Breaking out of the loop does too, and never touches the run (E3). */
  readonly signal?: CancelSignal;
  /** Of whoever shows it: over, the tail fails by its fault when everything there is has been seen. */
  readonly life?: Lifetime;
}

/**
 * The events of a run, as its commits left them. Every store passes `eventLogContract`, which checks:
 *
 * - E1 Seqs run from 0 without gaps and events never change; `verify` finds one that was edited, removed or reordered. What is chained
 *   is commits, as the store keeps them: a head is that of one run in one store, and moves with every commit.
 * - E2 Deltas reach those who tail, also those who come late, until the commit that records their message.
 * - E3 Anyone may read from any seq at any time; a reader that leaves disturbs nobody.
 */
export interface EventLog {
  /** What is there now. Ends. */
  read(runId: RunId, fromSeq?: number): AsyncIterable<Event>;
  /** What is there and what comes, without gaps or repeats. Ends after `run_end` has been seen. */
  tail(runId: RunId, options?: TailOptions): AsyncIterable<Event | Delta>;
  /** Returns the seq of the run's last event, or -1 if the run has no events. */
  lastSeq(runId: RunId): MaybePromise<number>;
  /** Not durable. Dropped without a word when the lease was lost. */
  putDelta(lease: Lease, delta: Delta): void;
  /** Against `head`, one this log had once and that was kept elsewhere, a cut tail is found as well. The log may have grown since. */
  verify(runId: RunId, head?: string): Promise<LogVerdict>;
}
