import type { AgentId, RunId, SessionId } from "../base/identity.ts";
import type { JsonObject } from "../base/json-value.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import type { RunMeta } from "../run/run-meta.ts";

/**
 * Identifies one memory. Each combination of tenant, user and agent is a memory of its own. `null` or an absent
 * field does not stand for all values.
 */
export interface MemoryScope {
  /** Id of the tenant. `null` or absent selects the memory of runs without a tenant. */
  readonly tenantId?: string | null;
  /** Id of the user. `null` selects the memory of runs without a user. */
  readonly userId: string | null;
  /** Id of the agent. If absent, the scope is the memory that belongs to no agent. */
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
 * A statement that is valid from `validFrom` (inclusive) to `validUntil` (exclusive). A newer statement does not
 * delete an older one but sets its `validUntil`. All times are in epoch milliseconds.
 */
export interface Fact {
  /** Id of the fact. */
  readonly id: string;
  /** What the statement is about. */
  readonly subject: string;
  /** The property or relation. */
  readonly predicate: string;
  /** The value of the property, or the entity with which the subject has a relation. */
  readonly object: string;
  /** Start of validity. */
  readonly validFrom: number;
  /** End of validity. `null` while the fact is valid. */
  readonly validUntil: number | null;
  /** Time at which the fact was stored, which may be long after `validFrom`. */
  readonly recordedAt: number;
}

/** What `Memory.recall` searches for. */
export interface RecallQuery {
  /** Search text in natural language. An empty text returns the latest episodes and facts. */
  readonly text: string;
  /** Maximum number of results of each kind. Default: 10. */
  readonly limit?: number;
  /** Time for which the facts are returned, in epoch milliseconds: those that were valid then. Default: now. */
  readonly asOf?: number;
}

/** What `Memory.recall` found, best match first. */
export interface Recall {
  /** Matching episodes. */
  readonly episodes: readonly Episode[];
  /** Matching facts. */
  readonly facts: readonly Fact[];
}

/**
 * An item to remember. A second write with the same `id` changes nothing, so that a tool which passes its
 * idempotency key as `id` may repeat the write (J6).
 */
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
 * - Y3: at any time at most one fact per subject and predicate is valid. A new fact ends the validity of the
 *   earlier one. A new fact with a `validFrom` in the past is valid until the next one starts. `asOf` reads the
 *   facts of any past time.
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
  /** Returns everything in the scope, including facts that are no longer valid. Each item has a `type`. */
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
 * Stores the raw messages of agents for `AgentContext`. Usually a view of `Sessions`, or a table of the
 * application. Sessions of workers have separate ids (`sessionWithin`), so that no agent reads the history of
 * another.
 */
export interface HistoryProvider {
  /**
   * Returns all messages of a history, oldest first. `meta` describes the run that reads; it is absent outside a
   * run.
   */
  read(key: HistoryKey, meta?: RunMeta): Promise<readonly ChatMessage[]>;
  /**
   * Appends the messages of a run. They replace messages that the same run appended to this history before, so that
   * a replay adds no duplicates; a later task of the run passes the earlier messages again. Not called with
   * `HistoryRetention.NONE`. `meta` describes the run that appends, with its tenant and trace; it is absent outside
   * a run.
   */
  append(key: HistoryKey, runId: RunId, messages: readonly ChatMessage[], meta?: RunMeta): Promise<void>;
  /** Returns the number of messages of a history. */
  count(key: HistoryKey): Promise<number>;
  /**
   * Deletes all messages that a run appended. The owner of a run with `HistoryRetention.RUN` calls it after the
   * commit that ends the run, whatever its status. Later owners repeat the call until it succeeds.
   */
  clearRun(runId: RunId): Promise<void>;
  /** Deletes all messages of a history. */
  clear(key: HistoryKey): Promise<void>;
}
