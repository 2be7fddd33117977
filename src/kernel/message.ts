import type { AgentId, RunId, TaskId } from "./identity.ts";
import type { JsonValue } from "./json.ts";

/** Where an answer goes: a wait of a task. */
export interface ReplyAddress {
  readonly runId: RunId;
  readonly taskId: TaskId;
  /** The name the asker waits under, derived from its step, so that a replay asks under the same (J2). */
  readonly wait: string;
}

/** What agents send each other. */
export interface Message {
  /** Sending it again under the same id is sending it once. */
  readonly id: string;
  /** `null`: from outside. */
  readonly from: AgentId | null;
  readonly to: AgentId;
  readonly body: JsonValue;
  readonly sentAt: number;
  readonly replyTo?: ReplyAddress;
}
