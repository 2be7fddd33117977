import { asksAboutCall, type ApprovalDecision, type ApprovalRequest } from "../../../src/kernel/index.ts";
import { oneLine, personName } from "../../base/format.ts";

/** Who decided what, as a sentence. The answer to a question is part of it. */
export function decisionWords(
  decision: ApprovalDecision,
  { kind, toolName }: Pick<ApprovalRequest, "kind" | "toolName">,
): string {
  const who = personName(decision.by);
  const reason =
    decision.decision === "denied" && decision.reason !== undefined ? `: ${decision.reason}` : "";
  // The runtime closes a question for whose answer nothing waits any more.
  if (decision.by === "runtime") return `This question was withdrawn${reason}`;
  if (asksAboutCall({ kind })) {
    const isEdited = decision.decision === "approved" && decision.input !== undefined;
    return isEdited
      ? `${who} changed the arguments of ${toolName} and approved the call`
      : `${who} ${decision.decision} ${toolName}${reason}`;
  }
  if (decision.decision === "skipped") return `${who} skipped the question`;
  if (decision.decision === "denied") return `${who} did not answer${reason}`;
  return decision.input === undefined ? `${who} agreed` : `${who} answered: ${oneLine(decision.input)}`;
}
