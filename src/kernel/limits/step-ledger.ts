import { bookLedger, copyLedger } from "./apply-ledger.ts";
import type { Ledger, LedgerCommand, LedgerStep } from "./ledger.ts";

/** Returns the ledger after one command and leaves the given one unchanged. Costs O(open accounts). */
export function stepLedger(state: Ledger, command: LedgerCommand): LedgerStep {
  const next = copyLedger(state);
  const outcome = bookLedger(next, command);
  return { state: outcome.applied ? next : state, outcome };
}
