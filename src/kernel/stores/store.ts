import type { Blobs } from "./blobs.ts";
import type { EventLog } from "./event-log.ts";
import type { RunId } from "../base/identity.ts";
import type { Inbox } from "./inbox.ts";
import type { Journal } from "./journal.ts";
import type { Leases } from "./lease.ts";
import type { Mailbox } from "./mailbox.ts";
import type { Sessions } from "../sessions/sessions.ts";
import type { Topics } from "./topics.ts";

/** Where runs and sessions live. Eight contracts over one set of data: memory, one SQLite file, or PostgreSQL. */
export interface Store {
  readonly journal: Journal;
  readonly events: EventLog;
  readonly mailbox: Mailbox;
  readonly inbox: Inbox;
  readonly sessions: Sessions;
  readonly blobs: Blobs;
  readonly leases: Leases;
  readonly topics: Topics;
  /**
   * Calls back, soon, after anyone wrote what may make a run ready or a message wait: in this process or another. The run is named where it
   * is known and all there is: that a message waits is told without one.
   */
  onChange(listener: (runId?: RunId) => void): () => void;
  close(): Promise<void>;
}
