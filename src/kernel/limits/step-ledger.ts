import { bookLedger, copyLedger } from "./apply-ledger.ts";
import type { Ledger, LedgerCommand, LedgerStep, ReserveCommand } from "./ledger.ts";
import { boundOf, isBearable } from "./reservation-bound.ts";
import { chainOf, findUnpriced } from "./reservation-decision.ts";

/** Returns the ledger after one command and leaves the given one unchanged. Costs O(open accounts). */
export function stepLedger(state: Ledger, command: LedgerCommand): LedgerStep {
  const next = copyLedger(state);
  const outcome = bookLedger(next, command);
  return { state: outcome.applied ? next : state, outcome };
}

/**
 * Whether a lower input bound could not improve the decision: the call is granted with its whole output limit, or it is
 * refused for another reason.
 */
export function fitsInFull(ledger: Ledger, request: ReserveCommand): boolean {
  const chain = chainOf(ledger.accounts, request.taskId);
  if (ledger.overrun !== null || findUnpriced(ledger, chain, request) !== undefined) return true;
  return isBearable(chain, boundOf(request, request.output.maxTokens));
}
