import type { AgentId, RunId, TaskId, TopicId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";
import type { TopUp } from "../limits/ledger.ts";
import type { Priority } from "../limits/priority.ts";
import type { Message } from "../messages/message.ts";
import type { Usage } from "../messages/usage.ts";
import type { ApprovalDecision } from "../run/approval.ts";
import type { InputQueue, TenantScope } from "../run/run-meta.ts";

/** The content of a mail, which is a request to a run from a process other than its owner. */
export type MailBody =
  /**
   * Resolves a named wait of a task: a reply, a signal, a child's end, a timer. If the task does not wait yet, the
   * value is kept. Each value is consumed once.
   */
  | { readonly type: "resolve"; readonly taskId: TaskId; readonly wait: string; readonly value: JsonValue }
  | { readonly type: "message"; readonly message: Message }
  | { readonly type: "approval"; readonly approvalId: string; readonly decision: ApprovalDecision }
  /**
   * Input that is kept until the task reads it. It does not end a wait. Default task: the root. `metadata` is the
   * metadata of a submission that became steering; it is absent for other input and for a submission without
   * metadata.
   */
  | {
      readonly type: InputQueue;
      readonly input: JsonValue;
      readonly taskId?: TaskId;
      readonly metadata?: JsonObject;
    }
  /**
   * Cancels a task. `reopens`: the run has stopped at its budget, and continues with its compensations. With
   * `caller`, the run is cancelled only if that run has started it.
   */
  | {
      readonly type: "cancel";
      readonly taskId: TaskId;
      readonly reason: string;
      readonly reopens?: true;
      readonly caller?: RunId;
    }
  | { readonly type: "pause" | "resume" }
  /**
   * Removes an input from its queue, if no step has read it. `inputId` is the id of the mail that brought the
   * input.
   */
  | { readonly type: "withdraw_input"; readonly inputId: string }
  | { readonly type: "top_up"; readonly taskId: TaskId; readonly add: Partial<TopUp> }
  /** B3: the usage of an unreported call, with its cost. `call` is the id of its reservation. */
  | { readonly type: "usage"; readonly call: string; readonly usage: Usage }
  | { readonly type: "reprioritize"; readonly taskId: TaskId; readonly priority: Priority };

/** A message to a run. @advanced */
export interface Mail {
  /** Id of the mail, unique within the run. Putting a second mail with the same id has no effect (P1). */
  readonly id: string;
  readonly runId: RunId;
  /** The sender, for the audit log: a person, an agent, or another run. */
  readonly from: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly body: MailBody;
}

/** A mail with its position in the run's mailbox. */
export interface PlacedMail extends Mail {
  /** Counts from 0 in the order of arrival. */
  readonly place: number;
}

/**
 * The mailbox of a run, to which every process other than the owner writes. Every store passes `mailboxContract`,
 * which checks:
 *
 * - P1 Putting is idempotent by id, also after the mail was consumed.
 * - P2 Mail is read in the order of arrival.
 * - P3 The owner consumes mail with a commit (`mailThrough`): mail is removed exactly when its effects are durable.
 *   The store then reports the change `consumed`, because a caller may wait for it.
 * - P4 Mail to a run that does not exist throws `not_found`. S6: so does mail to a run outside the scope.
 * - P5 `receiverOf` finds the run that got the mail of a submission, also after the mail was consumed.
 * - P6 The mail of a commit also reaches the runs that the submissions of the commit create.
 * - P7 A commit with an event `promise_reopen` forgets that its mail was put, so that a mail with this id may be
 *   put again.
 *
 * @advanced
 */
export interface Mailbox {
  /** Puts a mail into the mailbox of its run. Returns `false` if a mail with this id was put before. */
  put(mail: Mail, scope?: TenantScope): Promise<boolean>;
  /** Returns the mail that is not consumed yet, in the order of arrival (P2). */
  read(runId: RunId): MaybePromise<readonly PlacedMail[]>;
  /**
   * Returns the run that got the mail of a submission which became steering (S5). The id of such a mail starts with
   * `submit `; mail with other ids is not found. The cost does not grow with the log of the run.
   */
  receiverOf(mailId: string): MaybePromise<RunId | undefined>;
}

/** A change to the followers of a topic, which a run's commit applies. @advanced */
export interface TopicChange {
  readonly type: "follow" | "unfollow";
  readonly topicId: TopicId;
  readonly agentId: AgentId;
}

/**
 * The followers of topics. Every store passes `topicContract`, which checks:
 *
 * - Q1 Following a topic a second time has no effect. Unfollowing a topic that is not followed has no effect.
 * - Q2 Followers are listed in the order in which they started to follow.
 *
 * @advanced
 */
export interface Topics {
  apply(changes: readonly TopicChange[]): Promise<void>;
  /**
   * Returns the agents that follow a topic. The call is synchronous if the store can read synchronously, because
   * every run asks for the followers of its progress topic.
   */
  followers(topicId: TopicId): MaybePromise<readonly AgentId[]>;
}
