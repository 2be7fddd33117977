import type { AgentId, RunId, SessionId } from "../base/identity.ts";
import type { JsonObject } from "../base/json-value.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import type { RunMeta } from "../run/run-meta.ts";

/**
 * Identifies one memory. A memory is isolated from all others: neither `null` nor an absent field is a wildcard.
 */
export interface MemoryScope {
  /** Id of the tenant. `null` or absent selects the memory of runs without a tenant. */
  readonly tenantId?: string | null;
  /** Id of the user. `null` selects the memory of runs without a user. */
  readonly userId: string | null;
  /** Id of the agent. If absent, selects the memory that is not tied to an agent. */
  readonly agentId?: string;
}

/** A named text that every prompt includes. */
export interface MemoryBlock {
  /** Name of the block, unique in its scope. */
  readonly name: string;
  /** Text of the block. */
  readonly text: string;
}

/** Something that happened, as text. */
export interface Episode {
  /** Id of the episode. */
  readonly id: string;
  /** What happened. */
  readonly text: string;
  /** Time at which the episode was stored, in epoch milliseconds. */
  readonly at: number;
  /** Additional data of the caller. */
  readonly metadata?: JsonObject;
}

/**
 * A statement that is valid from `validFrom` (inclusive) to `validUntil` (exclusive). A newer statement closes a fact
 * instead of deleting it. All times are in epoch milliseconds.
 */
export interface Fact {
  /** Id of the fact. */
  readonly id: string;
  /** What the statement is about. */
  readonly subject: string;
  /** The property or relation. */
  readonly predicate: string;
  /** The value of the property, or the other side of the relation. */
  readonly object: string;
  /** Start of validity. */
  readonly validFrom: number;
  /** End of validity. `null` while the fact is valid. */
  readonly validUntil: number | null;
  /** Time at which the fact was stored. May be long after `validFrom`. */
  readonly recordedAt: number;
}

/** What `Memory.recall` searches for. */
export interface RecallQuery {
  /** Search text in natural language. An empty text returns the latest episodes and facts. */
  readonly text: string;
  /** Maximum number of results of each kind. Default: 10. */
  readonly limit?: number;
  /** Returns the facts that were valid at this time, in epoch milliseconds. Default: now. */
  readonly asOf?: number;
}

/** What `Memory.recall` found, best match first. */
export interface Recall {
  /** Matching episodes. */
  readonly episodes: readonly Episode[];
  /** Matching facts. */
  readonly facts: readonly Fact[];
}

/** Something to remember. A second write with the same `id` changes nothing; a tool passes its idempotency key (J6). */
export type MemoryWrite =
  /** Stores or replaces a block. An empty text deletes the block. */
  | { readonly type: "block"; readonly block: MemoryBlock }
  | { readonly type: "episode"; readonly text: string; readonly metadata?: JsonObject; readonly id?: string }
  | {
      readonly type: "fact";
      readonly fact: Pick<Fact, "subject" | "predicate" | "object"> & { readonly validFrom?: number };
      readonly id?: string;
    };

/**
 * What an agent remembers across sessions. Every implementation passes `memoryContract` of
 * `reeve/testing/contracts`, which checks:
 *
 * - Y1: data of one scope is never visible, changed or deleted through another scope.
 * - Y2: a block keeps its text until it is written again.
 * - Y3: at any time at most one fact per subject and predicate is valid. A new fact closes the valid one; a fact with
 *   an earlier `validFrom` ends where the next one starts. The facts that were valid at any past time stay readable.
 * - Y4: recall ignores case and accents, returns the closest match first, and accepts every text.
 * - Y5: forgotten data is removed from recall, from the export and from the file.
 */
export interface Memory {
  /** Returns all blocks of a scope. */
  blocks(scope: MemoryScope): Promise<readonly MemoryBlock[]>;
  /** Searches the episodes and facts of a scope. */
  recall(scope: MemoryScope, query: RecallQuery): Promise<Recall>;
  /** Stores a block, episode or fact. Returns the id of the stored item; for a block, its name. */
  remember(scope: MemoryScope, write: MemoryWrite): Promise<string>;
  /**
   * Deletes the items with these ids (for blocks, names), or everything in the scope. Returns the number of deleted
   * items.
   */
  forget(scope: MemoryScope, query?: { readonly ids: readonly string[] }): Promise<number>;
  /** Returns everything in the scope, including closed facts. Each item has a `type`. */
  export(scope: MemoryScope): AsyncIterable<JsonObject>;
  /** Releases the resources of the memory. */
  close(): Promise<void>;
}

/** Identifies one history: an agent's messages in one session. */
export interface HistoryKey {
  /** Id of the agent. */
  readonly agentId: AgentId;
  /** Id of the session. */
  readonly sessionId: SessionId;
}

/**
 * Stores the raw messages of agents for `AgentContext`. Usually a view of `Sessions`, or a table of the application.
 * Sessions of workers have separate ids (`sessionWithin`), so no agent reads the history of another.
 */
export interface HistoryProvider {
  /** Returns all messages of a history, oldest first. `meta` is the run that reads; absent outside a run. */
  read(key: HistoryKey, meta?: RunMeta): Promise<readonly ChatMessage[]>;
  /**
   * Appends the messages of a run. Messages that the same run appended to this history before are replaced, so a replay
   * adds no duplicates; a later task of the run passes them again. Not called with `HistoryRetention.NONE`. `meta` is the run that appends, with its tenant and trace; absent outside a run.
   */
  append(key: HistoryKey, runId: RunId, messages: readonly ChatMessage[], meta?: RunMeta): Promise<void>;
  /** Returns the number of messages of a history. */
  count(key: HistoryKey): Promise<number>;
  /**
   * Deletes all messages that a run appended. Called after the commit that ends a run with `HistoryRetention.RUN`,
   * whatever its status, and repeated, also by later owners, until it succeeds.
   */
  clearRun(runId: RunId): Promise<void>;
  /** Deletes all messages of a history. */
  clear(key: HistoryKey): Promise<void>;
}
