import type { AgentId, RunId, SessionId } from "../base/identity.ts";
import { optionNames } from "../base/option-check.ts";
import type { PendingApproval } from "./approval.ts";

/** A question of any run that no person has answered yet. */
export interface OpenApproval extends PendingApproval {
  /** Id of the run that asks. `RunHandle.approve` and `toolResult` of this run answer. */
  readonly runId: RunId;
  /** Id of the run's session. */
  readonly sessionId: SessionId;
  /** Id of the agent of the run's root task. `agentId` is the agent that asks. */
  readonly rootAgentId: AgentId;
  /** Id of the run's tenant. `null` for a run without a tenant. */
  readonly tenantId: string | null;
  /** Id of the run's user. `null` for a run without a user. */
  readonly userId: string | null;
}

/** Selects open questions. A question must match all given fields. */
export interface ApprovalQuery {
  /** Id of the run that asks. */
  readonly runId?: string;
  /** Id of the agent that asks. */
  readonly agentId?: string;
  /** Id of the run's tenant. `null` selects runs without a tenant. */
  readonly tenantId?: string | null;
  /** Id of the run's user. `null` selects runs without a user. */
  readonly userId?: string | null;
  /** Maximum number of questions per page. Default: 50. */
  readonly limit?: number;
  /** The `next` value of the previous page. If absent, returns the first page. */
  readonly after?: string;
}

/** The names of the fields of an `ApprovalQuery`. */
export const approvalQueryNames = optionNames<ApprovalQuery>({
  runId: true,
  agentId: true,
  tenantId: true,
  userId: true,
  limit: true,
  after: true,
});

/** One page of open questions. */
export interface ApprovalPage {
  /** The questions, the one that has waited longest first. */
  readonly approvals: readonly OpenApproval[];
  /**
   * Position of the next page, for `ApprovalQuery.after`. Stays valid when questions are asked or answered meanwhile.
   * `null` for the last page.
   */
  readonly next: string | null;
}
