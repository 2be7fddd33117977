import type { JsonValue, SessionId } from "../../kernel/index.ts";

/** A turn as it is recorded. What is large is named by its hash, and held by the first record of the run that names it. */
export interface TurnRecord {
  readonly at: number;
  readonly input: JsonValue;
  readonly instructions: string;
  readonly tools: string;
  readonly sessionId: SessionId | null;
  readonly leafId: string | null;
  /** Absent: what the path to the leaf says. */
  readonly history?: string;
  readonly contents?: Readonly<Record<string, JsonValue>>;
}
