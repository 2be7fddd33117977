import type { RunRecord } from "../../kernel/index.ts";

/** Whether two runs are of one user of one tenant. Without a name is a user of its own, and nobody else. */
export function sameCaller(one: RunRecord, other: RunRecord): boolean {
  return one.userId === other.userId && one.tenantId === other.tenantId;
}
