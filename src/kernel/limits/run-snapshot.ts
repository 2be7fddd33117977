import type { Headcount } from "./headcount.ts";
import type { Ledger } from "./ledger.ts";

/**
 * The current seats and money of a run, as its owner counts them (H4, B1). The numbers are not journaled, so decisions
 * that a replay must repeat may not depend on them.
 */
export interface RunSnapshot {
  readonly headcount: Headcount;
  readonly ledger: Ledger;
}
