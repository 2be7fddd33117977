import type { AgentId } from "./identity.ts";
import type { Message } from "./message.ts";

/** A message, with how often it was handed back. */
export interface Delivery {
  readonly message: Message;
  readonly deliveries: number;
}

/** A change to inboxes that rides in a run's commit: sent with the step that sent, acknowledged with the task that ends. */
export type InboxChange =
  | { readonly type: "deliver"; readonly message: Message }
  | { readonly type: "ack" | "nack"; readonly agentId: AgentId; readonly messageIds: readonly string[] };

/**
 * Where messages to an agent wait for an activation of it. Every store passes `inboxContract`, which checks:
 *
 * - I1 Delivery is idempotent by message id, also after the message was acknowledged.
 * - I2 Messages of one sender are drained in the order in which they were sent.
 * - I3 `peek` takes nothing away: a message stays until it is acknowledged.
 * - I4 A message handed back `maxDeliveries` times becomes a dead letter; it is kept and drained no more. They are in the order in which they became it, those of one
 *   `nack` in the order in which they came.
 */
export interface Inbox {
  readonly maxDeliveries: number;
  /** False: it was here before. */
  deliver(message: Message): Promise<boolean>;
  /** 100 unless told. */
  peek(agentId: AgentId, limit?: number): Promise<readonly Delivery[]>;
  ack(agentId: AgentId, messageIds: readonly string[]): Promise<void>;
  nack(agentId: AgentId, messageIds: readonly string[]): Promise<void>;
  deadLetters(agentId: AgentId): Promise<readonly Delivery[]>;
  /** Those of these agents for whom a message waits. */
  waiting(agentIds: readonly AgentId[]): Promise<readonly AgentId[]>;
}

/** One activation's view of its inbox. */
export interface TaskInbox {
  /** What this activation was started with. */
  readonly messages: readonly Message[];
  /** What has come since, journaled: a replay drains the same (J4). */
  drain(): Promise<readonly Message[]>;
}
