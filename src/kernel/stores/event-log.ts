import type { CancelSignal } from "../base/cancel-signal.ts";
import type { Delta } from "../messages/delta.ts";
import type { Event, EventType } from "../events/event.ts";
import type { RunId, SessionId } from "../base/identity.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";
import type { Lease } from "./lease.ts";
import type { Lifetime } from "../base/lifetime.ts";

/** The result of checking the hash chain of a log. */
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
      /** The first event that can no longer be trusted. */
      readonly seq: number;
      readonly problem: string;
      /** The session whose entry was changed. All events can then be trusted. Absent if the log was changed. */
      readonly sessionId?: SessionId;
    };

/** Where `EventLog.tail` begins, which events it yields and when it ends. */
export interface TailOptions {
  /** Seq of the first event. Default: 0. */
  readonly fromSeq?: number;
  /** If given, the tail yields events of these types only, and no deltas. The reader is not woken for other events. */
  readonly types?: readonly EventType[];
  /** Ends the tail. Breaking out of the loop ends the tail as well. Neither affects the run (E3). */
  readonly signal?: CancelSignal;
  /**
   * Lifetime of the runtime that opened the tail. When it ends, the tail yields the stored events and then throws its
   * fault.
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
 */
export interface EventLog {
  /** Reads the events that exist at the time of the call, then ends. */
  read(runId: RunId, fromSeq?: number): AsyncIterable<Event>;
  /**
   * Keeps the events that exist at the time of the call and returns a function that reads them, also after the run was
   * deleted or the store was closed. Decoding is left to that function. It throws `too_large` if the store would have to
   * keep more than 64 MiB of text.
   */
  keep(runId: RunId): MaybePromise<() => readonly Event[]>;
  /** Yields the existing events and then new ones, without gaps or repeats. Ends after `run_end`. */
  tail(runId: RunId, options?: TailOptions): AsyncIterable<Event | Delta>;
  /** Returns the seq of the run's last event, or -1 if the run has no events. */
  lastSeq(runId: RunId): MaybePromise<number>;
  /** Shows a delta to readers. Deltas are not durable. A delta of a lost lease is dropped silently. */
  putDelta(lease: Lease, delta: Delta): void;
  /**
   * Checks the hash chain. A `head` that this log had earlier also reveals a truncated log. The log may have grown
   * since then. A store in a file or a database also checks the session entries of the run, and those of no run in its session.
   */
  verify(runId: RunId, head?: string): Promise<LogVerdict>;
}
