import type { AgentId, RunId, TaskId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";

/** Where an answer goes: a wait of a task. */
export interface ReplyAddress {
  readonly runId: RunId;
  readonly taskId: TaskId;
  /** The name the asker waits under, derived from its step, so that a replay asks under the same (J2). */
  readonly wait: string;
}

/** The run a message was sent in, and in whose name: what it starts is in the same. */
export interface MessageSender {
  readonly runId: RunId;
  readonly userId: string | null;
  readonly tenantId: string | null;
  readonly metadata: JsonObject;
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
  /** Absent: from outside. */
  readonly sender?: MessageSender;
  readonly replyTo?: ReplyAddress;
}
