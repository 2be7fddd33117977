import type { AgentId, RunId, SessionId, TaskId } from "../base/identity.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";
import type { RunSummary } from "../run/run-summary.ts";
import type { TenantScope } from "../run/run-meta.ts";
import type { MessageBatch } from "./message-batch.ts";
import type { EntryVisibility, SessionEntry } from "./session-entry.ts";

/**
 * A change to a session. A change by a run is part of one of the run's commits. Any other change is applied by itself.
 *
 * @advanced
 */
export type SessionChange =
  /** Appends an entry. The first entry creates the session. Appending the same entry again changes nothing. */
  | {
      readonly type: "append";
      readonly sessionId: SessionId;
      readonly agentId: AgentId;
      readonly entry: SessionEntry;
      readonly visibility: EntryVisibility;
      /** N2: makes the entry a child of the session's current entry at the time of the change, instead of `entry.parentId`. */
      readonly atLeaf?: true;
    }
  /**
   * Appends the messages of a batch that are not stored yet. N3: visible messages continue from the session's
   * current entry. S2: only a user's entry can be pending.
   */
  | {
      readonly type: "say";
      readonly sessionId: SessionId;
      readonly agentId: AgentId;
      readonly batch: MessageBatch;
      readonly visibility: Exclude<EntryVisibility, "pending">;
    }
  /**
   * S1: closes an invocation: all entries that the run, or one of its tasks, wrote become visible. N3: pending
   * entries move after the session's current entry.
   */
  | {
      readonly type: "reveal";
      readonly sessionId: SessionId;
      readonly runId: RunId;
      readonly taskId?: TaskId;
    }
  /**
   * Deletes the entries that a run, or one of its tasks, wrote, because its history is not kept or the invocation
   * was abandoned.
   */
  | {
      readonly type: "remove";
      readonly sessionId: SessionId;
      readonly runId: RunId;
      readonly taskId?: TaskId;
    };

/** An entry of a session with its visibility. @advanced */
export interface StoredEntry {
  /** The entry. */
  readonly entry: SessionEntry;
  /** Whether the entry is part of the conversation. */
  readonly visibility: EntryVisibility;
}

/**
 * The owner of a session, for whom it was created. The owner stays the same when others write to the session later.
 */
export interface SessionOwner {
  /** Id of the tenant. `null` for a session without a tenant. */
  readonly tenantId: string | null;
  /** Id of the user. `null` for a session without a user. */
  readonly userId: string | null;
}

/** Options of `Sessions.apply`. */
export interface ApplyOptions {
  /** Owner of the sessions that the changes create. Default: the sessions have no tenant and no user. */
  readonly owner?: SessionOwner;
  /** S5: applies the changes only if this session is idle. */
  readonly whenIdle?: SessionId;
  /** Applies the changes only if this session does not exist; otherwise throws `already_exists`. */
  readonly whenNew?: SessionId;
  /**
   * Applies the changes only if this session exists and, if `leafId` is given, has this current entry. Otherwise
   * throws `not_found`. Without this option, a change that was prepared before the session was deleted would create
   * the session again.
   */
  readonly whenAt?: { readonly sessionId: SessionId; readonly leafId?: string | null };
  /** N7: copies a path to a new session, before the changes are applied. */
  readonly copy?: PathCopy;
  /** S6: throws `not_found` for changes to existing sessions outside this scope. */
  readonly scope?: TenantScope;
}

/** N7: a session path with which a new session starts. @advanced */
export interface PathCopy {
  /** The session that has the path. */
  readonly from: SessionId;
  /** The last entry of the path. */
  readonly leafId: string;
  /** The new session. It has the agent of the copied session, and the owner in `ApplyOptions`. */
  readonly to: SessionId;
}

/** Selects entries of a session. */
export interface EntryQuery {
  /** Whether pending and hidden entries are returned too. Default: `false`. */
  readonly includeHidden?: boolean;
  /** Whether only pending and hidden entries are returned. Default: `false`. */
  readonly onlyUnseen?: boolean;
  /** Id of the last entry of the previous page. If absent, the first page is returned. */
  readonly after?: string;
  /** Maximum number of entries. If absent, all entries are returned. */
  readonly limit?: number;
  /** S6: restricts the call to sessions in this scope. If absent, all sessions are accessible. */
  readonly scope?: TenantScope;
}

/** Selects the path of a session. @advanced */
export interface PathQuery {
  /** Last entry of the path. Default: the session's current entry. */
  readonly leafId?: string;
  /** Whether the default of `leafId` is the current entry of child tasks instead (N3). Default: `false`. */
  readonly ofChild?: boolean;
  /**
   * First entry of the path. `compaction`: the first entry that the newest compaction on the path keeps (S3), so that
   * the cost does not depend on the entries before it. `root`: the first entry of the session. Default: `root`.
   */
  readonly from?: "root" | "compaction";
  /**
   * Maximum number of entries of a path from the root. If the path is longer, the newest entries are returned.
   * Default: all.
   */
  readonly limit?: number;
  /** S6: restricts the call to sessions in this scope. If absent, all sessions are accessible. */
  readonly scope?: TenantScope;
}

/** A path of visible entries. */
export interface SessionPath {
  /** Id of the last entry. `null` if the conversation is empty. */
  readonly leafId: string | null;
  /** The entries, oldest first. */
  readonly entries: readonly SessionEntry[];
}

/** Selects sessions. A session must match all given fields. */
export interface SessionQuery {
  /** Id of the agent that the session belongs to. */
  readonly agentId?: AgentId;
  /** Selects the sessions of workers within this session (`sessionWithin`). */
  readonly under?: SessionId;
  /** Whether sessions of workers within other sessions are selected. Default: `true`. */
  readonly withWorkers?: boolean;
  /** Id of the owner's tenant. `null` selects sessions without a tenant. */
  readonly tenantId?: string | null;
  /** Id of the owner. `null` selects sessions without a user. */
  readonly userId?: string | null;
  /** Text that the name or the title contains. The case of ASCII letters is ignored. */
  readonly text?: string;
  /** Maximum number of sessions per page. Default: 50. */
  readonly limit?: number;
  /** The `next` value of the previous page. If absent, the first page is returned. */
  readonly after?: string;
}

/** One session in a list. */
export interface SessionSummary extends SessionOwner {
  /** Id of the session. */
  readonly sessionId: SessionId;
  /** Id of the agent to which the session belongs. */
  readonly agentId: AgentId;
  /** The start of the first user's message that has text, as `runTitle` returns it. `null` if no message has text. */
  readonly name: string | null;
  /** The start of the first user's message that has text, as `runTitle` returns it. `null` if there is none. */
  readonly title: string | null;
  /** N2: the current entry. `null` for a session whose conversation is empty. */
  readonly leafId: string | null;
  /** Number of entries. */
  readonly entries: number;
  /**
   * Time of the last entry, or of the commit that created the session if that is later, in epoch milliseconds. The
   * later time matters for the session of a fork, which is newer than its copied entries.
   */
  readonly updatedAt: number;
}

/** One page of a list of sessions. */
export interface SessionPage {
  /** The sessions, newest first. */
  readonly sessions: readonly SessionSummary[];
  /**
   * Position of the next page, for `SessionQuery.after`. A session that changes between two pages moves to the front:
   * no page repeats it, and a new first page contains it. `null` for the last page.
   */
  readonly next: string | null;
}

/**
 * Stores conversations as trees of entries. Every store passes `sessionContract`, which checks:
 *
 * - S1: `read` returns visible entries only, unless `includeHidden` is set.
 * - S2: appending an entry again changes nothing.
 * - S5: a session is idle if every run of every agent in it has ended and has no unread mail that may resume it.
 *   `apply` with `whenIdle`, and `delete`, change an idle session only. No run can start in the session between
 *   this check and the change.
 * - S6: a call with a `scope` behaves as if the sessions of other tenants and users did not exist. The store's
 *   queries check this, in the transaction that reads or writes.
 * - N1: entries are returned in the order of appending and never change. An entry whose parent is not in its
 *   session is refused with `not_found`.
 * - N2: the current entry is the last visible entry that a root task or a caller outside any run appended, without
 *   labels and session names. If that entry has the type `leaf`, the current entry is its target.
 * - N3: a later change never removes a part of the conversation from the path. A batch (`say`) and pending entries
 *   are appended after the current entry at that time (`rebaseBatch`). For a child task, the current entry is the
 *   last entry of any task.
 * - N4: an entry of type `leaf` or `label` whose target is not a visible entry of its session is refused with
 *   `not_found`.
 * - N5: `readPath` returns what `pathTo` returns for all visible entries; from the newest compaction on, if the
 *   query says so, and at most the `limit` newest entries of a path from the root. A path ends where its next entry
 *   was removed, is not visible, or is already on the path.
 * - N6: the first change of a session determines its owner. A change of a run has the user and the tenant of the
 *   run.
 * - N7: a copy has the entries that `readPath` returns for its current entry, with their ids, and the current label
 *   of each. The first entry has no parent. Later changes of one session do not change the other. Throws
 *   `not_found` if the current entry is not a visible entry, and `already_exists` if the new session exists.
 *
 * @advanced
 */
export interface Sessions {
  /**
   * Applies all changes, or none if one of them is refused. S5: with `whenIdle`, if the session is busy, applies
   * nothing and returns the run that keeps it busy.
   */
  apply(changes: readonly SessionChange[], options?: ApplyOptions): Promise<RunSummary | undefined>;
  /** Returns one session. `undefined` if it does not exist. */
  find(sessionId: SessionId, scope?: TenantScope): Promise<SessionSummary | undefined>;
  /**
   * Returns the visible entries of a session. With `includeHidden`, it also returns pending and hidden entries. A
   * session that does not exist has no entries. Throws `not_found` if the entry `after` does not exist.
   */
  read(sessionId: SessionId, query?: EntryQuery): MaybePromise<readonly StoredEntry[]>;
  /**
   * Returns a path of a session. `undefined` if `leafId` is given and is not a visible entry of the session. The path of
   * a session that does not exist is empty.
   */
  readPath(sessionId: SessionId, query?: PathQuery): MaybePromise<SessionPath | undefined>;
  /** Returns sessions, newest first. */
  list(query?: SessionQuery): Promise<SessionPage>;
  /**
   * Deletes a session with the sessions within it (`sessionWithin`). S5: if the session is busy, nothing is deleted and
   * the run that keeps it busy is returned. Does nothing for a session that does not exist (S6).
   */
  delete(sessionId: SessionId, scope?: TenantScope): Promise<RunSummary | undefined>;
  /**
   * Deletes sessions that were created for a single run without a `sessionId` (`isUnnamedSession`), with the
   * sessions within them as one group. A group is deleted as a whole, and only if no other run wrote to it, its run
   * no longer exists, and every `updatedAt` is before `unnamedBefore` (epoch milliseconds). Returns the number of
   * deleted sessions.
   */
  collect(options: { readonly unnamedBefore: number }): Promise<number>;
}
