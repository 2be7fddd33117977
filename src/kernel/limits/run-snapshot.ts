import type { Headcount } from "./headcount.ts";
import type { Ledger } from "./ledger.ts";

/**
 * A run's numbers as its owner holds them now (H4, B1). For views: they are not journaled, so nothing that a replay must decide the
 * same way may depend on them.
 */
export interface RunSnapshot {
  readonly headcount: Headcount;
  readonly ledger: Ledger;
}
