import type { ApprovalMemory, RememberedApproval } from "../../kernel/index.ts";

/** Remembered approvals for as long as this process lives. */
export class InMemoryApprovals implements ApprovalMemory {
  readonly #remembered = new Set<string>();

  has(approval: RememberedApproval): boolean {
    return this.#remembered.has(keyOf(approval));
  }

  add(approval: RememberedApproval): void {
    this.#remembered.add(keyOf(approval));
  }

  delete(approval: RememberedApproval): void {
    this.#remembered.delete(keyOf(approval));
  }
}

export function inMemoryApprovals(): InMemoryApprovals {
  return new InMemoryApprovals();
}

/** As JSON, so that a user called "null" is not nobody, and no name runs into the next. */
function keyOf({ tenantId, userId, agentId, toolName }: RememberedApproval): string {
  return JSON.stringify([tenantId, userId, agentId, toolName]);
}
