import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import type { ApprovalDecision, ApprovalQuery } from "./approval.ts";

// The tables have a file of their own, because the page needs what `approval.ts` says of questions, and no tables.

/**
 * The fields of a decision. Unknown fields are refused, because a misspelt `input` would run the call with the
 * arguments that the person wanted to change.
 */
export const approvalDecisionTable = optionTable({
  decision: is.any,
  input: is.any,
  remember: is.any,
  reason: is.any,
  by: is.any,
} satisfies OptionKinds<ApprovalDecision>);

export const approvalQueryTable = optionTable({
  runId: is.any,
  agentId: is.any,
  tenantId: is.any,
  userId: is.any,
  limit: is.any,
  after: is.any,
} satisfies OptionKinds<ApprovalQuery>);
