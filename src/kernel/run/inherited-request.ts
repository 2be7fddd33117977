import type { RunId, SessionId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { ThinkingLevel } from "../messages/thinking-level.ts";

/** The request with which a child that shares its parent's prompt starts: the last one of a task, or of an ended run. */
export type InheritedRequest = RequestOfTask | RequestOfRun;

/** The last request of a task of the same run. `RunContext.child` stores it with the child. */
export interface RequestOfTask {
  /** Hash of the system prompt. */
  readonly instructions: string;
  /** Hash of the tool list. */
  readonly tools: string;
  /** Session that the history of the parent comes from. `null` if the parent has no history there. */
  readonly sessionId: SessionId | null;
  /** Id of the session entry up to which the history goes. `null` for the start of the session. */
  readonly leafId: string | null;
  /** Hash of the messages that replace the history of the session path. Absent if that path is the history. */
  readonly history?: string;
  /** Hashes of the lists of messages that follow the history, in their order. */
  readonly said: readonly string[];
  /** Role whose model the request called. */
  readonly role: string;
  /** The model that the session sets. Absent if it sets none. */
  readonly model?: { readonly provider: string; readonly modelId: string };
  /** The thinking level that the session sets. Absent if it sets none. */
  readonly thinkingLevel?: ThinkingLevel;
  /** Limit of tool calls per turn. Absent if all calls are executed. */
  readonly maxToolCallsPerTurn?: number;
  /** Contents that no earlier record of the run holds, by hash. */
  readonly contents?: Readonly<Record<string, JsonValue>>;
}

/** The last request of the root of an ended run. The child reads it from that run's journal when it starts. */
export interface RequestOfRun {
  /** Id of the ended run. */
  readonly runId: RunId;
  /** Session of the ended run. */
  readonly sessionId: SessionId;
}
