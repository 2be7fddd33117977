import type { Contents } from "./contents.ts";
import type { EventLog } from "./event-log.ts";
import type { Inbox } from "./inbox.ts";
import type { Journal } from "./journal.ts";
import type { Leases } from "./lease.ts";
import type { Mailbox } from "./mailbox.ts";
import type { Records } from "./records.ts";
import type { StoreChange } from "./store-change.ts";
import type { Sessions } from "../sessions/sessions.ts";
import type { Topics } from "./topics.ts";
import type { UsageTotals } from "./usage-totals.ts";

/** Storage of runs and sessions: ten contracts over one set of data. Implementations: memory, one SQLite file, and PostgreSQL. */
export interface Store {
  readonly journal: Journal;
  readonly events: EventLog;
  readonly mailbox: Mailbox;
  readonly inbox: Inbox;
  readonly sessions: Sessions;
  readonly contents: Contents;
  readonly leases: Leases;
  readonly topics: Topics;
  readonly records: Records;
  readonly usage: UsageTotals;
  /**
   * Calls the listener soon after any process wrote a change that may make a run ready or a message available, and tells
   * why. Returns a function that removes the listener.
   */
  onChange(listener: (change: StoreChange) => void): () => void;
  close(): Promise<void>;
}
