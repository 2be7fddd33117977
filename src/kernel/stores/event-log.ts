import type { CancelSignal } from "../base/cancel-signal.ts";
import type { Delta } from "../messages/delta.ts";
import type { Event, EventType } from "../events/event.ts";
import type { RunId, SessionId } from "../base/identity.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";
import type { Lease } from "./lease.ts";
import type { Lifetime } from "../base/lifetime.ts";

/** The result of checking the hash chain of a log. @advanced */
export type LogVerdict =
  | {
      readonly ok: true;
      readonly events: number;
      /** Head of the chain. Store it elsewhere, and pass it to `verify` later to detect a truncated log. */
      readonly head: string;
      /** Whether the chain is an HMAC with the store's `auditKey`. A chain without a key can be recomputed by anyone. */
      readonly keyed: boolean;
      /** Number of events after the head that was passed to `verify`. `null` if no head was passed. */
      readonly sinceHead: number | null;
    }
  | {
      readonly ok: false;
      /** The first event that was changed or removed. It and all later events cannot be trusted. */
      readonly seq: number;
      readonly problem: string;
      /**
       * The session in which an entry was changed; all events can then be trusted. Absent if the log itself was
       * changed.
       */
      readonly sessionId?: SessionId;
    };

/** Where `EventLog.tail` begins, which events it yields and when it ends. @advanced */
export interface TailOptions {
  /** Seq of the first event. Default: 0. */
  readonly fromSeq?: number;
  /** If given, the tail yields events of these types only, and no deltas. The reader is not woken for other events. */
  readonly types?: readonly EventType[];
  /** Ends the tail. Leaving the loop also ends the tail. Neither affects the run (E3). */
  readonly signal?: CancelSignal;
  /**
   * Lifetime of the runtime that opened the tail. When the lifetime ends, the tail yields the stored events and
   * then throws the fault of the lifetime.
   */
  readonly life?: Lifetime;
}

/**
 * The events of a run. Only commits add events. Every store passes `eventLogContract`, which checks:
 *
 * - E1 Seqs start at 0 and have no gaps, and events never change. `verify` detects an event that was edited, removed or
 *   reordered. The store chains whole commits, so a head belongs to one run in one store and changes with every commit.
 * - E2 A tail yields the deltas of a message until the commit that records the message, also to readers that join late.
 * - E3 A reader may read from any seq at any time. A reader that leaves affects neither the run nor other readers.
 *
 * @advanced
 */
export interface EventLog {
  /** Reads the events that exist at the time of the call, then ends. */
  read(runId: RunId, fromSeq?: number): AsyncIterable<Event>;
  /**
   * Keeps the events that exist at the time of the call and returns a function that reads them, even after the run
   * was deleted or the store was closed. That function also decodes them. Throws `too_large` if the store would
   * have to keep more than 64 MiB of text.
   */
  keep(runId: RunId): MaybePromise<() => readonly Event[]>;
  /** Yields the existing events and then new ones, without gaps or repeats. Ends after `run_end`. */
  tail(runId: RunId, options?: TailOptions): AsyncIterable<Event | Delta>;
  /** Returns the seq of the run's last event, or -1 if the run has no events. */
  lastSeq(runId: RunId): MaybePromise<number>;
  /** Sends a delta to readers. Deltas are not durable. If the lease is lost, the delta is dropped silently. */
  putDelta(lease: Lease, delta: Delta): void;
  /**
   * Checks the hash chain. With a `head` that this log had earlier, it also detects that the end of the log was cut
   * off; the log may have grown since then. A store in a file or a database also checks the session entries of the
   * run, and the entries of its session that belong to no run.
   */
  verify(runId: RunId, head?: string): Promise<LogVerdict>;
}
