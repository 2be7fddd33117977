import type {
  HandledInput,
  JsonValue,
  ModelReference,
  SessionId,
  ThinkingLevel,
} from "../../kernel/index.ts";

/**
 * The record of a `turn` step. Large contents are named by hash, and the first record of the run that names a
 * content also contains it (J4).
 */
export interface TurnRecord {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly input: JsonValue;
  /** Hash of the instructions. */
  readonly instructions: string;
  /** Hash of the tool list. */
  readonly tools: string;
  readonly sessionId: SessionId | null;
  /** Id of the session entry after which the turn starts. */
  readonly leafId: string | null;
  /** Hash of the history. If absent, the history is the session path up to the current entry. */
  readonly history?: string;
  /** Hashes of the lists of messages that come after the history, if the task shares the prompt of another task. */
  readonly said?: readonly string[];
  /** Role of the shared request. Present only if the task shares the prompt of another task. */
  readonly role?: string;
  /** Hash of `TurnPlan.earlier`. */
  readonly earlier?: string;
  /** See `TurnPlan.carried`. */
  readonly carried?: JsonValue;
  /** See `TurnPlan.maxToolCallsPerTurn`. */
  readonly maxToolCallsPerTurn?: number;
  /** See `TurnPlan.isTransformed`. */
  readonly isTransformed?: true;
  /** See `Turn.isSteered`. */
  readonly isSteered?: true;
  /** See `TurnPlan.handled`. */
  readonly handled?: HandledInput;
  /** The model that the session path sets. Absent if it sets no model. */
  readonly model?: ModelReference;
  /** The thinking level that the session path sets. Absent if it sets no level. */
  readonly thinkingLevel?: ThinkingLevel;
  /** Contents that no earlier record of the run contains, by hash. */
  readonly contents?: Readonly<Record<string, JsonValue>>;
}

interface HeldContent {
  readonly content: JsonValue;
  /** Whether retention does not erase the record that contains the content. */
  readonly lasts: boolean;
}

/** J4: the contents that records of a run name by hash. */
export class SharedContents {
  #contents: Map<string, HeldContent> | undefined;

  find(hash: string): JsonValue | undefined {
    return this.#contents?.get(hash)?.content;
  }

  /** Whether a record contains the content. With `lasting`, only records that retention does not erase count. */
  has(hash: string, { lasting }: { readonly lasting: boolean }): boolean {
    const held = this.#contents?.get(hash);
    return held !== undefined && (held.lasts || !lasting);
  }

  hold(hash: string, content: JsonValue, lasts: boolean): void {
    const known = this.#contents?.get(hash);
    (this.#contents ??= new Map()).set(hash, { content, lasts: lasts || known?.lasts === true });
  }
}
