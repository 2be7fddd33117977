import { bookLedger, copyLedger } from "./apply-ledger.ts";
import type { Ledger, LedgerCommand, LedgerStep } from "./ledger.ts";

/** The ledger after one command; the one handed in is not changed. Costs O(accounts that are open). */
export function stepLedger(state: Ledger, command: LedgerCommand): LedgerStep {
  const next = copyLedger(state);
  const outcome = bookLedger(next, command);
  return { state: outcome.applied ? next : state, outcome };
}
