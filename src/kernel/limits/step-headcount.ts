import type { Headcount, HeadcountCommand, HeadcountStep } from "./headcount.ts";
import { copyHeadcount, seatHeadcount } from "./apply-headcount.ts";

/** The headcount after one command; the one handed in is not changed. Costs O(tasks that have not ended). */
export function stepHeadcount(state: Headcount, command: HeadcountCommand): HeadcountStep {
  const next = copyHeadcount(state);
  const outcome = seatHeadcount(next, command);
  const isChanged = outcome.kind !== "ignored" && outcome.kind !== "refused";
  return { state: isChanged ? next : state, outcome };
}
