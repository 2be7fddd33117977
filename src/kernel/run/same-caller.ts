import type { RunRecord } from "./run-record.ts";

type Caller = Pick<RunRecord, "userId" | "tenantId">;

/**
 * Whether two runs belong to the same user of the same tenant. Runs without a user belong together and to no named
 * user.
 */
export function sameCaller(one: Caller, other: Caller): boolean {
  return one.userId === other.userId && one.tenantId === other.tenantId;
}
