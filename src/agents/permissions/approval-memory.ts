import type { ApprovalMemory, RememberedApproval } from "../../kernel/index.ts";

/** Remembers approvals in memory, as long as the process lives. */
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

/**
 * The key of an approval. It is JSON, so that a user named "null" differs from no user, and names cannot run into each
 * other.
 */
function keyOf({ tenantId, userId, agentId, toolName }: RememberedApproval): string {
  return JSON.stringify([tenantId, userId, agentId, toolName]);
}
