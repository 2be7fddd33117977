import type { AgentId, RunId } from "../base/identity.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import type { Message } from "../messages/message.ts";
import type { TenantScope } from "../run/run-meta.ts";

/**
 * How often, and after which delay, a message is delivered again that an activation has handed back. An activation
 * is a run that processes messages.
 */
export interface InboxSettings {
  /** I4: a message that was handed back this often becomes a dead letter. Default: 5. */
  readonly maxDeliveries: number;
  /** Delay after the first time a message is handed back. Each further delay is four times as long. Default: 1_000. */
  readonly baseDelayMs: number;
  /** Upper bound of the delay. Default: 300_000. */
  readonly maxDelayMs: number;
}

const knownOptions = optionTable({
  maxDeliveries: is.integer({ from: 1, or: [Infinity, "no end"], default: 5 }),
  baseDelayMs: is.number({ from: 0, finite: true, default: 1_000 }),
  maxDelayMs: is.number({ from: 0, finite: true, default: 300_000 }),
} satisfies OptionKinds<InboxSettings>);

/**
 * Merges the settings with the defaults. Throws `invalid_argument` for an invalid number: NaN would retry a message
 * forever, or never.
 */
export function inboxSettings(given: Partial<InboxSettings> = {}): InboxSettings {
  return knownOptions.read("the inbox of a store", given);
}

/** I6: returns the delay before the next delivery of a message that was handed back this often. @advanced */
export function redeliveryDelayMs(
  deliveries: number,
  { baseDelayMs, maxDelayMs }: Pick<InboxSettings, "baseDelayMs" | "maxDelayMs">,
): number {
  // 0 * Infinity would be NaN.
  return baseDelayMs === 0 ? 0 : Math.min(maxDelayMs, baseDelayMs * 4 ** (deliveries - 1));
}

/** A message in an inbox. @advanced */
export interface Delivery {
  readonly message: Message;
  /** Number of times that an activation has handed the message back. */
  readonly deliveries: number;
  /** Time before which the message is not delivered again, in epoch milliseconds. */
  readonly notBefore?: number;
  /** The run that is processing the message, or processed it last. */
  readonly runId?: RunId;
  /** Number of times that the message was a dead letter and was delivered again. */
  readonly redelivered?: number;
}

/**
 * A change to an inbox that a run's commit applies. A step delivers a message, a run that starts takes one, and a
 * task that ends acknowledges it (`ack`) or hands it back (`nack`).
 *
 * @advanced
 */
export type InboxChange =
  | { readonly type: "deliver"; readonly message: Message }
  | {
      readonly type: "take" | "ack" | "nack";
      readonly agentId: AgentId;
      readonly messageIds: readonly string[];
    };

/** `each`: every message starts its own activation. `together`: one activation at a time gets all waiting messages. */
export type InboxMode = "each" | "together";

/** Which messages `Inbox.next` returns. @advanced */
export interface InboxQuery {
  readonly mode: InboxMode;
  /** Current time in epoch milliseconds. */
  readonly now: number;
  /**
   * A running activation that asks for more messages. It gets the messages that wait behind its own in the same
   * line. With `together`, it also gets those of other lines.
   */
  readonly runId?: RunId;
  /**
   * S6: selects messages whose sender has this tenant; `null` means no tenant. If absent, the tenant does not
   * matter.
   */
  readonly tenantId?: string | null;
  /** Maximum number of messages. Default: 100. */
  readonly limit?: number;
}

export interface NextMail {
  readonly deliveries: readonly Delivery[];
  /** Time at which the first delayed message may be delivered again. `null` means that no message is delayed. */
  readonly at: number | null;
}

/**
 * Messages that wait for an activation of an agent. The messages of one sender form a line. A sender is an agent in
 * one run; all messages from outside any run form one line. Every store passes `inboxContract`, which checks:
 *
 * - I1 Delivery is idempotent by message id, also after the message was acknowledged.
 * - I2 The messages of one line are delivered in the order in which they were sent: a message is next when every
 *   earlier message of its line is acknowledged, is a dead letter, or is held by the run that asks for more. A
 *   message never waits for another line, nor for an earlier message of its own line that asks for a reply: its
 *   sender either waits itself or works concurrently.
 * - I3 `peek` and `next` do not remove messages. A message stays until it is acknowledged.
 * - I4 A message that was handed back `maxDeliveries` times becomes a dead letter, which is kept but not delivered.
 *   They are listed in the order in which they became dead letters, and those of one `nack` in the order of
 *   arrival. A redelivered message counts as new.
 * - I5 One run at a time holds a message. It takes the message with a commit. If another run holds the first
 *   message of a new run, the new run is not created, and a commit neither acknowledges nor hands back a message
 *   that another run holds. Deleting the run frees its messages.
 * - I6 A message that a commit hands back, or `nack` with a time, is delayed; the delay grows each time
 *   (`redeliveryDelayMs`).
 *
 * @advanced
 */
export interface Inbox {
  /** Settings of this inbox for messages that are handed back. */
  readonly settings: InboxSettings;
  /** Stores a message for its receiver. Returns `false` if a message with this id was delivered before. */
  deliver(message: Message): Promise<boolean>;
  /** Returns messages that are not acknowledged, in the order of arrival. Default limit: 100. */
  peek(agentId: AgentId, limit?: number): Promise<readonly Delivery[]>;
  /** Returns the messages with these ids that are not acknowledged, including dead letters. */
  find(agentId: AgentId, messageIds: readonly string[]): Promise<readonly Delivery[]>;
  /**
   * Returns the messages that a run may take now. With `each`, these are the first messages of all lines. With
   * `together`, these are all messages, or none while a run holds one.
   */
  next(agentId: AgentId, query: InboxQuery): Promise<NextMail>;
  ack(agentId: AgentId, messageIds: readonly string[]): Promise<void>;
  /**
   * Hands messages back, so that they are delivered again. `at` is the current time in epoch milliseconds, from
   * which the delay counts. Without `at` they may be delivered again immediately.
   */
  nack(agentId: AgentId, messageIds: readonly string[], at?: number): Promise<void>;
  /**
   * Returns the dead letters of the agent, or of all agents. S6: with a scope, only dead letters whose sender is in
   * the scope.
   */
  deadLetters(agentId?: AgentId, scope?: TenantScope): Promise<readonly Delivery[]>;
  /**
   * Delivers dead letters again and returns their number. Default: all dead letters of the agent. S6: with a scope,
   * only dead letters whose sender is in the scope.
   */
  redeliver(agentId: AgentId, messageIds?: readonly string[], scope?: TenantScope): Promise<number>;
  /** Returns the agents in this list that have a message which no run holds. */
  waiting(agentIds: readonly AgentId[]): Promise<readonly AgentId[]>;
}

/** Returns the line of the agent's inbox that the message belongs to. */
export function lineOf({ from, sender }: Pick<Message, "from" | "sender">): string {
  return `${from ?? ""} ${sender?.runId ?? ""}`;
}

/** Returns the tenant of the run that sent the message. `null` for a message from outside or from a run without a tenant. */
export function senderTenant({ sender }: Pick<Message, "sender">): string | null {
  return sender?.tenantId ?? null;
}

/** The inbox as one activation sees it. */
export interface TaskInbox {
  /** The messages that started this activation. */
  readonly messages: readonly Message[];
  /**
   * Returns messages that arrived after the activation started. The result is journaled, so that a replay returns
   * the same messages (J4). In mode `each`, only messages from the senders of the messages that started the
   * activation are returned.
   */
  drain(): Promise<readonly Message[]>;
}
