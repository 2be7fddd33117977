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

/** Returns the part of a command that the caller can choose freely. */
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
 * Returns the id of the mail that answers a question. It contains `seq`, the sequence number of the event that
 * asked, because a resumed run may ask again. P1: the store accepts one mail per id, so that the first answer
 * counts, also if several processes answer at once.
 */
export function answerId(approvalId: string, seq: number): string {
  return `answer ${seq} ${approvalId}`;
}

/** Throws for a value that is not a decision, and for a decision with unknown fields. */
export function checkDecision(approvalId: string, decision: ApprovalDecision): void {
  if (!isApprovalDecision(decision)) {
    throw new Fault(
      "invalid_argument",
      `the decision on ${approvalId} is ${describeDecision(decision)}: it must be { decision: "approved" | "denied" | "skipped" }`,
    );
  }
  approvalDecisionTable.read(`the decision on ${approvalId}`, decision);
}

/** Describes a value that is not a decision, for an error. */
function describeDecision(value: unknown): string {
  if (typeof value !== "object" || value === null) return describeValue(value);
  return "decision" in value
    ? `{ decision: ${describeValue(value.decision)} }`
    : "an object without `decision`";
}
