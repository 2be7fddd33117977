import type { RunRecord } from "./run-record.ts";

type Caller = Pick<RunRecord, "userId" | "tenantId">;

/** Whether two runs are of one user of one tenant. Without a name is a user of its own, and nobody else. */
export function sameCaller(one: Caller, other: Caller): boolean {
  return one.userId === other.userId && one.tenantId === other.tenantId;
}
