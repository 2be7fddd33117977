import { approvalKey, type ApprovalMemory } from "../../../kernel/index.ts";

/** Creates a memory of approvals that lasts as long as the process. Several policies may share one. */
export function inMemoryApprovals(): ApprovalMemory {
  const remembered = new Set<string>();
  return {
    has: (approval) => remembered.has(approvalKey(approval)),
    add: (approval) => void remembered.add(approvalKey(approval)),
    delete: (approval) => void remembered.delete(approvalKey(approval)),
  };
}
