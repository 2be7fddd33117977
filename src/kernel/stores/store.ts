import type { RunId, SessionId } from "../base/identity.ts";
import type { Sessions } from "../sessions/sessions.ts";
import type { EventLog } from "./event-log.ts";
import type { Inbox } from "./inbox.ts";
import type { Journal } from "./journal.ts";
import type { Leases } from "./lease.ts";
import type { Mailbox, Topics } from "./mailbox.ts";
import type { Records } from "./records.ts";
import type { Scores } from "./scores.ts";
import type { UsageTotals } from "./usage-totals.ts";

/** A run or a session that owns a content. @advanced */
export type ContentOwner = { readonly runId: RunId } | { readonly sessionId: SessionId };

/**
 * Large values, named by a hash of their bytes. A durable store also keeps the large values of commits and session
 * entries this way, in the transaction that writes them: the commit and the entry then refer to the content by its
 * hash. Every store passes `contentContract`, which checks:
 *
 * - V1 `get` returns the bytes that were put, unchanged. The same bytes always have the same hash.
 * - V2 A content has owners, which are runs and sessions, and is deleted with its last owner. `put` and `share`
 *   throw `not_found` for an owner that does not exist. A commit or an entry that refers to a content keeps it,
 *   whatever `release` does.
 * - V3 Only owners can read a content. Each tenant has its own contents; `share` never crosses tenants.
 * - V4 A value of a commit or an entry is read back unchanged, whatever its size. An entry keeps its values when
 *   its run is deleted, and a fork keeps them when the original run is deleted.
 * - V5 Once a task's text is erased, no large value of the task remains in the store, and the chain is valid (E1).
 *
 * @advanced
 */
export interface Contents {
  /**
   * Stores the bytes for the owner and returns their hash: SHA-256 in base64url, or an HMAC if the store has an
   * `auditKey`. Bytes that are already stored for the tenant are not stored again.
   */
  put(owner: ContentOwner, bytes: Uint8Array): Promise<string>;
  /** Returns the content if this owner has put or shares it, otherwise `undefined`. */
  get(owner: ContentOwner, hash: string): Promise<Uint8Array | undefined>;
  /** Makes `to` another owner of a content of `from`. Rejects with `not_found` if `from` does not own the content. */
  share(hash: string, owners: { readonly from: ContentOwner; readonly to: ContentOwner }): Promise<void>;
  /** Ends the ownership that `put` or `share` created. Does nothing if the owner does not own the content. */
  release(owner: ContentOwner, hash: string): Promise<void>;
  /** Returns all owners of a content that `owner` owns. Empty if `owner` does not own the content. */
  owners(owner: ContentOwner, hash: string): Promise<readonly ContentOwner[]>;
}

/** Another process that wrote to the store. */
type OtherWriter = "worker" | "client";

/**
 * Why a store calls the listeners of `onChange`, so that an engine can decide what to do without a query.
 *
 * - `new`: the run was created. It is ready, or will be ready at `startAt` if that is given.
 * - `mail`: mail arrived for the run. Unless a live worker owns the run, it is ready.
 * - `consumed`: the owner of the run has consumed its mail.
 * - `released`: the owner has released the run. `isReady` tells whether a worker may claim it now.
 * - `seized`: the run has another owner.
 * - `message`: a message waits in the inbox of an agent, or may be delivered again.
 * - `worker`: a worker has unregistered or died. Its runs are ready.
 * - `record`: a record of the namespace was written or deleted. It makes no run ready.
 * - `other`: another process may have written to the store. Anything may have changed. `owned` lists the changed
 *   runs among those that this store owns; if it is absent, all of these may have changed.
 *
 * `writer` says what kind of process made the change, if the store knows it: a process with a registered worker,
 * whose engine knows of the change, or a process without one. It is absent if this process made the change.
 *
 * @advanced
 */
export type StoreChange =
  | {
      readonly kind: "new";
      readonly runId: RunId;
      readonly startAt: number | null;
      readonly writer?: OtherWriter;
    }
  | { readonly kind: "mail"; readonly runId: RunId; readonly writer?: OtherWriter }
  | { readonly kind: "consumed" | "seized"; readonly runId: RunId }
  | { readonly kind: "released"; readonly runId: RunId; readonly isReady: boolean }
  | { readonly kind: "record"; readonly namespace: string }
  | { readonly kind: "other"; readonly owned?: readonly RunId[] }
  | { readonly kind: "message" | "worker" };

/**
 * Storage of runs and sessions. It combines eleven contracts over one set of data. Implementations: memory, one
 * SQLite file, and PostgreSQL.
 */
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
  readonly scores: Scores;
  /**
   * Calls the listener soon after any process wrote a change that may make a run ready or a message available, with
   * a description of the change. Returns a function that removes the listener.
   */
  onChange(listener: (change: StoreChange) => void): () => void;
  close(): Promise<void>;
}
