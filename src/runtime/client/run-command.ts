import {
  approvalDecisionTable,
  describeValue,
  Fault,
  isApprovalDecision,
  type ApprovalDecision,
  type JsonValue,
  type MailBody,
} from "../../kernel/index.ts";

/** The commands of a handle, as errors name them. */
export const commandNames: Readonly<Record<MailBody["type"], string>> = {
  resolve: "signal",
  message: "message",
  steer: "steering input",
  follow_up: "follow-up",
  approval: "answer to a question",
  cancel: "reason of the cancel",
  pause: "pause command",
  resume: "resume command",
  top_up: "top-up",
  usage: "usage of an unreported call",
  reprioritize: "new priority",
  withdraw_input: "withdrawal of an input",
};

/** The part of a command that the caller chooses freely. */
export function valueIn(body: MailBody): JsonValue {
  switch (body.type) {
    case "resolve":
      return body.value;
    case "steer":
    case "follow_up":
      return body.input;
    case "approval":
      return body.decision;
    case "cancel":
      return body.reason;
    case "withdraw_input":
      return body.inputId;
    default:
      return null;
  }
}

/**
 * The id of the mail that answers a question. `seq` is the event with which the run asked: a run that was resumed may ask
 * again. P1: the store takes one mail per id, so the first answer counts, whichever processes answer at once.
 */
export function answerId(approvalId: string, seq: number): string {
  return `answer ${seq} ${approvalId}`;
}

/** Refuses a value that is no decision, and a decision with unknown fields. */
export function checkDecision(approvalId: string, decision: ApprovalDecision): void {
  if (!isApprovalDecision(decision)) {
    throw new Fault(
      "invalid_argument",
      `the decision on ${approvalId} is ${describeDecision(decision)}: it must be { decision: "approved" | "denied" | "skipped" }`,
    );
  }
  approvalDecisionTable.read(`the decision on ${approvalId}`, decision);
}

/** Describes a value that is no decision, for an error. */
function describeDecision(value: unknown): string {
  if (typeof value !== "object" || value === null) return describeValue(value);
  return "decision" in value
    ? `{ decision: ${describeValue(value.decision)} }`
    : "an object without `decision`";
}
