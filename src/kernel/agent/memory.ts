import type { JsonObject } from "../base/json-value.ts";

/** Whose memory: a hard wall. `userId` `null` is a bucket of its own, never everyone's; so is no `agentId`. */
export interface MemoryScope {
  readonly userId: string | null;
  readonly agentId?: string;
}

/** A named text that stands in every prompt. */
export interface MemoryBlock {
  readonly name: string;
  readonly text: string;
}

export interface Episode {
  readonly id: string;
  readonly text: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly metadata?: JsonObject;
}

/**
 * True from `validFrom` until, and not at, `validUntil`; superseded facts are closed, not deleted. `recordedAt` is when it was learnt, which
 * may be long after. Times in epoch milliseconds.
 */
export interface Fact {
  readonly id: string;
  readonly subject: string;
  readonly predicate: string;
  readonly object: string;
  readonly validFrom: number;
  readonly validUntil: number | null;
  readonly recordedAt: number;
}

export interface RecallQuery {
  /** Words to look for, as a person would write them. Empty: the latest. */
  readonly text: string;
  /** Of each kind; 10 unless told. */
  readonly limit?: number;
  /** Facts as they stood then; absent: now. */
  readonly asOf?: number;
}

export interface Recall {
  readonly episodes: readonly Episode[];
  readonly facts: readonly Fact[];
}

/** `id`: writing it again under the same id writes nothing; a tool hands in its idempotency key (J6). */
export type MemoryWrite =
  /** An empty text takes the block away. */
  | { readonly type: "block"; readonly block: MemoryBlock }
  | { readonly type: "episode"; readonly text: string; readonly metadata?: JsonObject; readonly id?: string }
  | {
      readonly type: "fact";
      readonly fact: Pick<Fact, "subject" | "predicate" | "object"> & { readonly validFrom?: number };
      readonly id?: string;
    };

/**
 * What an agent remembers across sessions. Every implementation passes `memoryContract`, which checks:
 *
 * - Y1 Nothing of one scope is ever seen, changed or forgotten from another.
 * - Y2 A block stands under its name until it is written anew.
 * - Y3 At any moment at most one fact of a subject and predicate is valid: a new one closes the one that stood, and one that is learnt
 *   late ends where the next begins. What was believed at a time can be asked for ever after.
 * - Y4 Recall finds words whatever their case and accents, the closest match first; no text is an error in it.
 * - Y5 What is forgotten is gone, from recall, from the export and from the file.
 */
export interface Memory {
  blocks(scope: MemoryScope): Promise<readonly MemoryBlock[]>;
  recall(scope: MemoryScope, query: RecallQuery): Promise<Recall>;
  /** The id of what stands there now; of a block, its name. */
  remember(scope: MemoryScope, write: MemoryWrite): Promise<string>;
  /** Deletes what has these ids (of a block, its name), or all of the scope; says how many. */
  forget(scope: MemoryScope, query?: { readonly ids: readonly string[] }): Promise<number>;
  /** Everything, closed facts as well, each with its `type`. */
  export(scope: MemoryScope): AsyncIterable<JsonObject>;
  close(): Promise<void>;
}
