import type { AgentId, RunId, TaskId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";

/** Address of a waiting task to which a reply is sent. */
interface ReplyAddress {
  /** Id of the waiting run. */
  readonly runId: RunId;
  /** Id of the waiting task. */
  readonly taskId: TaskId;
  /** Name of the wait. J2: it is derived from the caller's step, so that a replay waits under the same name. */
  readonly wait: string;
}

/** The run that sent a message. A run that the message starts gets the same user, tenant and metadata. */
export interface MessageSender {
  /** Id of the sending run. */
  readonly runId: RunId;
  /** Id of the user. `null` for a run without a user. */
  readonly userId: string | null;
  /** Id of the tenant. `null` for a run without a tenant. */
  readonly tenantId: string | null;
  /** Metadata of the sending run. */
  readonly metadata: JsonObject;
}

/** A message to an agent's inbox. */
export interface Message {
  /** Id of the message. If a message is sent again with the same id, it is delivered only once. */
  readonly id: string;
  /** Id of the sending agent. `null` for a message from outside any run. */
  readonly from: AgentId | null;
  /** Id of the receiving agent. */
  readonly to: AgentId;
  /** Content of the message. */
  readonly body: JsonValue;
  /** Time of sending, in epoch milliseconds. */
  readonly sentAt: number;
  /** The run that sent the message. Absent for a message from outside any run. */
  readonly sender?: MessageSender;
  /** The waiting task to which the reply is sent. Absent if the sender does not wait for a reply. */
  readonly replyTo?: ReplyAddress;
}
