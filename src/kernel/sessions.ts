import type { AgentId, RunId, SessionId } from "./identity.ts";
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
    }
  /** S1: the invocation is closed; everything it wrote is visible. */
  | { readonly type: "reveal"; readonly sessionId: SessionId; readonly runId: RunId }
  /** What a run wrote goes: retention NONE or RUN, or an invocation given up. */
  | { readonly type: "remove"; readonly sessionId: SessionId; readonly runId: RunId };

export interface PlacedEntry {
  readonly entry: SessionEntry;
  readonly visibility: EntryVisibility;
}

export interface SessionSummary {
  readonly sessionId: SessionId;
  readonly agentId: AgentId;
  readonly entries: number;
  readonly updatedAt: number;
}

/**
 * Conversations, as trees of entries. Every store passes `sessionContract`, which checks:
 *
 * - S1 `read` shows visible entries only, unless asked for all.
 * - S2 Appending an entry again changes nothing.
 * - N1 Entries come in the order of appending and never change; one whose parent is not in its session is refused with
 *   `not_found`.
 */
export interface Sessions {
  /** All or nothing. */
  apply(changes: readonly SessionChange[]): Promise<void>;
  read(sessionId: SessionId, options?: { readonly hiddenToo?: boolean }): Promise<readonly PlacedEntry[]>;
  /** The newest first. */
  list(options?: { readonly agentId?: AgentId; readonly limit?: number }): Promise<readonly SessionSummary[]>;
  delete(sessionId: SessionId): Promise<void>;
}
