import type { JsonObject } from "./json.ts";

/** Whose memory: a hard wall. `userId` `null` is a bucket of its own, never everyone's. */
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
  readonly at: number;
  readonly metadata?: JsonObject;
}

/** True from `validFrom` until `validUntil`; superseded facts are closed, not deleted. Times in epoch milliseconds. */
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
  readonly text: string;
  readonly limit?: number;
  /** Facts as they stood then; absent: now. */
  readonly asOf?: number;
}

export interface Recall {
  readonly episodes: readonly Episode[];
  readonly facts: readonly Fact[];
}

export type MemoryWrite =
  | { readonly type: "block"; readonly block: MemoryBlock }
  | { readonly type: "episode"; readonly text: string; readonly metadata?: JsonObject }
  | {
      readonly type: "fact";
      readonly fact: Pick<Fact, "subject" | "predicate" | "object"> & { validFrom?: number };
    };

/** What an agent remembers across sessions. Nothing of one scope is ever seen from another. */
export interface Memory {
  blocks(scope: MemoryScope): Promise<readonly MemoryBlock[]>;
  recall(scope: MemoryScope, query: RecallQuery): Promise<Recall>;
  remember(scope: MemoryScope, write: MemoryWrite): Promise<void>;
  /** Deletes what matches, or all of the scope; says how many. */
  forget(scope: MemoryScope, query?: { readonly ids: readonly string[] }): Promise<number>;
  export(scope: MemoryScope): AsyncIterable<JsonObject>;
}
