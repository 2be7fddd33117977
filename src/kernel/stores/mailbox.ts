import type { ApprovalDecision } from "../run/approval.ts";
import type { RunId, TaskId } from "../base/identity.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";
import type { InputQueue } from "../run/input-queue.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { TopUp } from "../limits/ledger.ts";
import type { Message } from "../messages/message.ts";
import type { Priority } from "../limits/priority.ts";

/** What anyone but the owner may want of a run. */
export type MailBody =
  /** Resolves a named wait of a task: a reply, a signal, a child's end, a timer. Kept when early, consumed once. */
  | { readonly type: "resolve"; readonly taskId: TaskId; readonly wait: string; readonly value: JsonValue }
  | { readonly type: "message"; readonly message: Message }
  | { readonly type: "approval"; readonly approvalId: string; readonly decision: ApprovalDecision }
  /** Kept until a drain of the root takes it; wakes nothing by itself. */
  | { readonly type: InputQueue; readonly input: JsonValue }
  | { readonly type: "cancel"; readonly taskId: TaskId; readonly reason: string }
  | { readonly type: "pause" | "resume" }
  | { readonly type: "top_up"; readonly taskId: TaskId; readonly add: Partial<TopUp> }
  | { readonly type: "reprioritize"; readonly taskId: TaskId; readonly priority: Priority };

export interface Mail {
  /** Putting it again under the same id is putting it once. */
  readonly id: string;
  readonly runId: RunId;
  /** A person, an agent, another run; for the audit. */
  readonly from: string;
  readonly at: number;
  readonly body: MailBody;
}

/** A mail with its place in the run's mailbox. */
export interface PlacedMail extends Mail {
  /** From 0, in the order of arrival. */
  readonly place: number;
}

/**
 * Where everyone but the owner writes to a run. Every store passes `mailboxContract`, which checks:
 *
 * - P1 Putting is idempotent by id, also after the mail was consumed.
 * - P2 Mail is read in the order of arrival, so FIFO for each sender.
 * - P3 The owner consumes by a commit (`mailThrough`): mail is gone exactly when what it caused is durable.
 * - P4 Mail to a run that does not exist is refused with `not_found`.
 */
export interface Mailbox {
  /** False: it was here before. */
  put(mail: Mail): Promise<boolean>;
  /** Returns the mail that is not consumed yet, in the order of arrival (P2). */
  read(runId: RunId): MaybePromise<readonly PlacedMail[]>;
}
