import type { AgentId, RunId, SessionId, TaskId } from "../base/identity.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";
import type { RunSummary } from "../run/run-summary.ts";
import type { MessageBatch } from "./message-batch.ts";
import type { EntryVisibility, SessionEntry } from "./session-entry.ts";

/**
 * A change to a session. A change by a run is part of one of the run's commits. Any other change is applied by itself.
 */
export type SessionChange =
  /** Appends an entry; the first entry creates the session. Appending the same entry again changes nothing. */
  | {
      readonly type: "append";
      readonly sessionId: SessionId;
      readonly agentId: AgentId;
      readonly entry: SessionEntry;
      readonly visibility: EntryVisibility;
      /** N2: makes the entry a child of the session's leaf at the time of the change, instead of `entry.parentId`. */
      readonly atLeaf?: true;
    }
  /** Appends the messages of a batch that are not stored yet. N3: visible messages continue from the session's leaf. */
  | {
      readonly type: "say";
      readonly sessionId: SessionId;
      readonly agentId: AgentId;
      readonly batch: MessageBatch;
      readonly visibility: EntryVisibility;
    }
  /**
   * S1: closes an invocation. All entries that the run wrote, or one of its tasks, become visible. N3: pending entries
   * move after the session's leaf.
   */
  | {
      readonly type: "reveal";
      readonly sessionId: SessionId;
      readonly runId: RunId;
      readonly taskId?: TaskId;
    }
  /**
   * Deletes the entries that a run wrote, or one of its tasks, because its history is not retained or the invocation
   * was abandoned.
   */
  | {
      readonly type: "remove";
      readonly sessionId: SessionId;
      readonly runId: RunId;
      readonly taskId?: TaskId;
    };

/** An entry of a session with its visibility. */
export interface StoredEntry {
  /** The entry. */
  readonly entry: SessionEntry;
  /** Whether the entry is part of the conversation. */
  readonly visibility: EntryVisibility;
}

/** Selects sessions. A session must match all given fields. */
export interface SessionQuery {
  /** Id of the agent that the session belongs to. */
  readonly agentId?: AgentId;
  /** Selects the sessions of workers within this session (`sessionWithin`). */
  readonly under?: SessionId;
  /** Maximum number of sessions. Default: 50. */
  readonly limit?: number;
}

/** One session in a list. */
export interface SessionSummary {
  /** Id of the session. */
  readonly sessionId: SessionId;
  /** Id of the agent that the session belongs to. */
  readonly agentId: AgentId;
  /** Number of entries. */
  readonly entries: number;
  /**
   * Time of the last entry, or of the commit that created the session if that is later, in epoch milliseconds. The
   * session of a fork is newer than the entries that it copies.
   */
  readonly updatedAt: number;
}

/**
 * Stores conversations as trees of entries. Every store passes `sessionContract`, which checks:
 *
 * - S1: `read` returns visible entries only, unless `includeHidden` is set.
 * - S2: appending an entry again changes nothing.
 * - N1: entries are returned in the order of appending and never change. An entry whose parent is not in its session is
 *   refused with `not_found`.
 * - N2: the leaf is the last visible entry that a root task or a caller outside any run appended, without labels and
 *   session names. If that entry has the type `leaf`, the leaf is its target.
 * - N3: a later change never removes a part of the conversation from the path. A batch (`say`) and pending entries are
 *   appended after the leaf at that time (`rebaseBatch`). For a child task, the leaf is the last entry of any task.
 */
export interface Sessions {
  /** Applies all changes, or none if one of them is refused. */
  apply(changes: readonly SessionChange[]): Promise<void>;
  /**
   * Returns the visible entries of a session; with `includeHidden`, pending and hidden entries as well. A session that
   * does not exist has no entries.
   */
  read(
    sessionId: SessionId,
    options?: { readonly includeHidden?: boolean },
  ): MaybePromise<readonly StoredEntry[]>;
  /** Returns sessions, newest first. */
  list(options?: SessionQuery): Promise<readonly SessionSummary[]>;
  /**
   * Deletes a session with the sessions within it (`sessionWithin`). S5: while a run is in progress in the session, or
   * has ended but has unread mail that may resume it, nothing is deleted and that run is returned. No run can start in
   * the session between this check and the deletion.
   */
  delete(sessionId: SessionId): Promise<RunSummary | undefined>;
  /**
   * Deletes sessions that were created for a single run without a `sessionId` (`isUnnamedSession`), together with the
   * sessions within them, all or none of each group. A group is deleted only if no other run wrote to it, its run no
   * longer exists, and every `updatedAt` is before `unnamedBefore` (epoch milliseconds). Returns the number of deleted
   * sessions.
   */
  collect(options: { readonly unnamedBefore: number }): Promise<number>;
}
