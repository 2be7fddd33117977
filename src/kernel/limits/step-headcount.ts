import type { Headcount, HeadcountCommand, HeadcountStep } from "./headcount.ts";
import { copyHeadcount, seatHeadcount } from "./apply-headcount.ts";

/** Returns the headcount after one command and leaves the given one unchanged. Costs O(live tasks). */
export function stepHeadcount(state: Headcount, command: HeadcountCommand): HeadcountStep {
  const next = copyHeadcount(state);
  const outcome = seatHeadcount(next, command);
  const isChanged = outcome.kind !== "ignored" && outcome.kind !== "refused";
  return { state: isChanged ? next : state, outcome };
}
