import { approvalKey, type ApprovalMemory, type RememberedApproval } from "../../../kernel/index.ts";

/** Remembers approvals in memory, as long as the process lives. */
export class InMemoryApprovals implements ApprovalMemory {
  readonly #remembered = new Set<string>();

  has(approval: RememberedApproval): boolean {
    return this.#remembered.has(approvalKey(approval));
  }

  add(approval: RememberedApproval): void {
    this.#remembered.add(approvalKey(approval));
  }

  delete(approval: RememberedApproval): void {
    this.#remembered.delete(approvalKey(approval));
  }
}

export function inMemoryApprovals(): InMemoryApprovals {
  return new InMemoryApprovals();
}
