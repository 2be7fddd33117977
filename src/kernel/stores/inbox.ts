import type { AgentId, RunId } from "../base/identity.ts";
import type { InboxSettings } from "./inbox-settings.ts";
import type { Message } from "../messages/message.ts";

/** A message, with how often it was handed back. */
export interface Delivery {
  readonly message: Message;
  readonly deliveries: number;
  /** Handed back, it is left alone until then (epoch milliseconds). */
  readonly notBefore?: number;
  /** The run that has it, or had it last. */
  readonly runId?: RunId;
  /** How often it was a dead letter and given another chance. */
  readonly redelivered?: number;
}

/**
 * A change to inboxes that rides in a run's commit: sent with the step that sent, taken with the run that begins, acknowledged or handed
 * back with the task that ends.
 */
export type InboxChange =
  | { readonly type: "deliver"; readonly message: Message }
  | {
      readonly type: "take" | "ack" | "nack";
      readonly agentId: AgentId;
      readonly messageIds: readonly string[];
    };

/** What an activation is begun with: each message has one of its own; or one at a time has all that wait. */
export type InboxMode = "each" | "together";

export interface InboxQuery {
  readonly mode: InboxMode;
  /** Epoch milliseconds. */
  readonly now: number;
  /** For more, by a run under way: what stands behind its messages; `together`, also what stands behind nobody's. */
  readonly runId?: RunId;
  /** 100 unless told. */
  readonly limit?: number;
}

export interface NextMail {
  readonly deliveries: readonly Delivery[];
  /** When the first of those that are left alone may be tried again; `null`: there are none. */
  readonly at: number | null;
}

/**
 * Where messages to an agent wait for an activation of it. The messages of one sender are a line: those of an agent in one run, or those
 * from outside. Every store passes `inboxContract`, which checks:
 *
 * - I1 Delivery is idempotent by message id, also after the message was acknowledged.
 * - I2 Messages of one sender are drained in the order in which they were sent: one is next when what was sent before it in its line is
 *   acknowledged or a dead letter, or is with the run that asks for more. It does not wait for other lines, nor for an earlier one that
 *   wants a reply: whoever asks waits itself, or does several things at once.
 * - I3 `peek` and `next` take nothing away: a message stays until it is acknowledged.
 * - I4 A message handed back `maxDeliveries` times becomes a dead letter; it is kept and drained no more. They are in the order in which they became it, those of one
 *   `nack` in the order in which they came. Redelivered, it is as if it came now for the first time.
 * - I5 A message has one run at a time, which takes it with a commit. A run that begins with one that is not free does not begin; what another
 *   run has, a commit neither acknowledges nor hands back. If the run is deleted, its messages are free.
 * - I6 Handed back by a commit, or at a given time, a message is left alone, the longer the more often it was (`redeliveryDelayMs`).
 */
export interface Inbox {
  /** Of whoever hands back. */
  readonly settings: InboxSettings;
  /** False: it was here before. */
  deliver(message: Message): Promise<boolean>;
  /** What is not acknowledged, in the order in which it came. 100 unless told. */
  peek(agentId: AgentId, limit?: number): Promise<readonly Delivery[]>;
  /** Of these, what is not acknowledged, dead letters too. */
  find(agentId: AgentId, messageIds: readonly string[]): Promise<readonly Delivery[]>;
  /** What may be taken now. `each`: what stands behind nothing; `together`: all, but nothing while a run has some. */
  next(agentId: AgentId, query: InboxQuery): Promise<NextMail>;
  ack(agentId: AgentId, messageIds: readonly string[]): Promise<void>;
  /** `at`: the time it is (epoch milliseconds). Without one they may be tried again at once. */
  nack(agentId: AgentId, messageIds: readonly string[], at?: number): Promise<void>;
  /** Of all agents, unless told. */
  deadLetters(agentId?: AgentId): Promise<readonly Delivery[]>;
  /** How many. All dead letters of the agent, unless told. */
  redeliver(agentId: AgentId, messageIds?: readonly string[]): Promise<number>;
  /** Those of these agents for whom a message waits that no run has. */
  waiting(agentIds: readonly AgentId[]): Promise<readonly AgentId[]>;
}

/** Which line of its agent's inbox a message stands in. */
export function lineOf({ from, sender }: Pick<Message, "from" | "sender">): string {
  return `${from ?? ""} ${sender?.runId ?? ""}`;
}

/** One activation's view of its inbox. */
export interface TaskInbox {
  /** What this activation was started with. */
  readonly messages: readonly Message[];
  /**
   * What has come since, journaled: a replay drains the same (J4). Where each message has an activation of its own, that is what those sent
   * who sent what it was started with.
   */
  drain(): Promise<readonly Message[]>;
}
