import type { ApprovalPage, ApprovalQuery, OpenApproval } from "../../../kernel/index.ts";
import { approvalCursorOf, openApproval, type ApprovalChange } from "../approval-changes.ts";
import type { RunRow } from "./run-row.ts";

interface Question {
  readonly approval: OpenApproval;
  /** Position of the question in the order in which questions were asked, from 1. */
  readonly place: number;
}

/** K4: the open questions of all runs, in the order in which they were asked. */
export class OpenApprovals {
  readonly #open = new Map<number, Question>();
  #asked = 0;

  applyNow(row: RunRow, changes: readonly ApprovalChange[]): void {
    for (const change of changes)
      if (change.type === "open") this.#add(row, openApproval(row.record, change.event));
      else this.#close(row, (approval) => isClosed(approval, change));
  }

  /** The run was deleted. */
  removeNow(row: RunRow): void {
    this.#close(row, () => true);
  }

  list(query: ApprovalQuery = {}): ApprovalPage {
    const { after, limit } = approvalCursorOf(query);
    const found: Question[] = [];
    for (const question of this.#open.values()) {
      if (question.place <= after || !matches(question.approval, query)) continue;
      found.push(question);
      if (found.length > limit) break;
    }
    const shown = found.slice(0, limit);
    const next = found.length > limit ? String(shown.at(-1)?.place) : null;
    return { approvals: shown.map(({ approval }) => approval), next };
  }

  #add(row: RunRow, approval: OpenApproval): void {
    this.#close(row, ({ approvalId }) => approvalId === approval.approvalId);
    const place = ++this.#asked;
    this.#open.set(place, { approval, place });
    row.questions = [...row.questions, place];
  }

  #close(row: RunRow, isOver: (approval: OpenApproval) => boolean): void {
    if (row.questions.length === 0) return;
    row.questions = row.questions.filter((place) => {
      const question = this.#open.get(place);
      const stays = question !== undefined && !isOver(question.approval);
      if (!stays) this.#open.delete(place);
      return stays;
    });
  }
}

function isClosed(
  { approvalId, taskId }: OpenApproval,
  change: Exclude<ApprovalChange, { type: "open" }>,
): boolean {
  if (change.type === "answer") return approvalId === change.approvalId;
  return change.type === "end" ? taskId === change.taskId : approvalId.startsWith(change.prefix);
}

function matches(approval: OpenApproval, query: ApprovalQuery): boolean {
  for (const name of ["runId", "agentId", "tenantId", "userId"] as const)
    if (query[name] !== undefined && query[name] !== approval[name]) return false;
  return true;
}
