import type { AgentId, RunId, SessionId, TaskId } from "../base/identity.ts";
import type { RunSummary } from "../run/run-summary.ts";
import type { MessageBatch } from "./message-batch.ts";
import type { EntryVisibility, SessionEntry } from "./session-entry.ts";

/** A change to a session. Inside a run it rides in a commit; from outside it is applied by itself. */
export type SessionChange =
  /** The same entry again is nothing. Creates the session with its first entry. */
  | {
      readonly type: "append";
      readonly sessionId: SessionId;
      readonly agentId: AgentId;
      readonly entry: SessionEntry;
      readonly visibility: EntryVisibility;
      /** N2: its parent is the session's leaf, as it is when this is applied. */
      readonly atLeaf?: true;
    }
  /**
   * The same for many that follow each other, all or those that are not there yet. N3: visible ones go on from the
   * leaf.
   */
  | {
      readonly type: "say";
      readonly sessionId: SessionId;
      readonly agentId: AgentId;
      readonly batch: MessageBatch;
      readonly visibility: EntryVisibility;
    }
  /**
   * S1: the invocation is closed; everything it wrote is visible. Of one task of the run, or of all. N3: what was
   * pending is put under the leaf.
   */
  | {
      readonly type: "reveal";
      readonly sessionId: SessionId;
      readonly runId: RunId;
      readonly taskId?: TaskId;
    }
  /** What a run, or one task of it, wrote goes: its history is not to be kept, or an invocation was given up. */
  | {
      readonly type: "remove";
      readonly sessionId: SessionId;
      readonly runId: RunId;
      readonly taskId?: TaskId;
    };

export interface StoredEntry {
  readonly entry: SessionEntry;
  readonly visibility: EntryVisibility;
}

/** Which sessions; all that is given must fit. */
export interface SessionQuery {
  readonly agentId?: AgentId;
  /** Those within this one (`sessionWithin`): its children's. */
  readonly under?: SessionId;
  /** 50 unless told. */
  readonly limit?: number;
}

export interface SessionSummary {
  readonly sessionId: SessionId;
  readonly agentId: AgentId;
  readonly entries: number;
  /**
   * When its last entry was said, or when a commit began it, whichever is later: a fork's is a copy of what was said
   * before.
   */
  readonly updatedAt: number;
}

/**
 * Conversations, as trees of entries. Every store passes `sessionContract`, which checks:
 *
 * - S1 `read` shows visible entries only, unless asked for all.
 * - S2 Appending an entry again changes nothing.
 * - N1 Entries come in the order of appending and never change; one whose parent is not in its session is refused with
 *   `not_found`.
 * - N2 The leaf is the visible entry appended last by a root task or outside any run, labels and names aside, or what
 *   it points to if it is of type `leaf`.
 * - N3 Nothing that is part of the conversation leaves it by what is said later: what is said (`say`), and what was
 *   pending, comes after the leaf as it is then (`rebaseBatch`). For what a child says that is the last entry of all.
 */
export interface Sessions {
  /** All or nothing. */
  apply(changes: readonly SessionChange[]): Promise<void>;
  read(sessionId: SessionId, options?: { readonly includeHidden?: boolean }): Promise<readonly StoredEntry[]>;
  /** What is visible, where nothing has to be waited for; else `undefined`. A store that cannot do it has none. */
  readNow?(sessionId: SessionId): readonly StoredEntry[] | undefined;
  /** The newest first. */
  list(options?: SessionQuery): Promise<readonly SessionSummary[]>;
  /**
   * With those within it (`sessionWithin`). S5: while a run is under way in it, or has ended and has mail that it has
   * not read (it may be told to go on), nothing is, and that run is the answer; no run can begin between the look and
   * the deletion.
   */
  delete(sessionId: SessionId): Promise<RunSummary | undefined>;
  /**
   * Deletes those that nobody named (`isUnnamedSession`) and nobody came back to, with those within them
   * (`sessionWithin`): that run alone wrote to it and to each of them, it is gone by now, and the `updatedAt` of all is
   * before this (epoch milliseconds). All go or none. How many.
   */
  collect(options: { readonly unnamedBefore: number }): Promise<number>;
}
