import {
  describeValue,
  Fault,
  type ApprovalQuery,
  type Commit,
  type Event,
  type OpenApproval,
  type RunRecord,
  type TaskId,
} from "../../kernel/index.ts";
import { checkLimit, checkName, cursorParts } from "./run-cursor.ts";

/** K4: how a commit changes the open questions of its run. */
export type ApprovalChange =
  | { readonly type: "open"; readonly event: Event<"approval_request"> }
  | { readonly type: "answer"; readonly approvalId: string }
  /** Closes all questions of a task. */
  | { readonly type: "end"; readonly taskId: TaskId }
  /** Closes the questions with an id that begins with this text. */
  | { readonly type: "leave"; readonly prefix: string };

/**
 * K4: returns the changes that a commit makes to the open questions of its run, in order. `undefined` if there are
 * none.
 */
export function approvalChangesIn({ events, steps, tasks }: Commit): readonly ApprovalChange[] | undefined {
  let changes: ApprovalChange[] | undefined;
  const add = (change: ApprovalChange): void => {
    if (changes === undefined) changes = [change];
    else changes.push(change);
  };
  if (events !== undefined)
    for (const event of events) {
      if (event.type === "approval_request") add({ type: "open", event });
      else if (event.type === "approval_decision") add({ type: "answer", approvalId: event.data.approvalId });
      else if (event.type === "task_end") add({ type: "end", taskId: event.taskId });
    }
  if (tasks !== undefined)
    for (const change of tasks) if (change.type === "continue") add({ type: "end", taskId: change.taskId });
  if (steps !== undefined)
    for (const { kind, taskId, address } of steps)
      if (kind === "race") add({ type: "leave", prefix: `${taskId}/${address}/` });
  return changes;
}

/** The fields of a run that are part of its open questions. */
type AskingRun = Pick<RunRecord, "runId" | "agentId" | "sessionId" | "tenantId" | "userId">;

/** Returns the open question that this event of a run asks. */
export function openApproval(
  { runId, agentId: rootAgentId, sessionId, tenantId, userId }: AskingRun,
  { data, taskId, agentId, at: requestedAt }: Event<"approval_request">,
): OpenApproval {
  return { ...data, runId, sessionId, rootAgentId, tenantId, userId, taskId, agentId, requestedAt };
}

/** An `ApprovalQuery` with its defaults, after a check of its values. It selects only questions after its place. */
export interface ApprovalCursor {
  readonly after: number;
  readonly limit: number;
}

export function approvalCursorOf({ after, limit = 50, ...names }: ApprovalQuery): ApprovalCursor {
  checkLimit(limit);
  for (const name of ["tenantId", "userId"] as const) checkName("approvals()", name, names[name]);
  if (after !== undefined && cursorParts(/^[1-9][0-9]{0,15}$/, after).length === 0)
    throw new Fault(
      "invalid_argument",
      `invalid cursor ${describeValue(after)}: pass the \`next\` of an earlier page of approvals`,
    );
  return { after: Number(after ?? 0), limit };
}
