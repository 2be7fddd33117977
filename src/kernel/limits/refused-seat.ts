import type { RefusalReason, SeatHolder } from "./headcount.ts";

const words: Readonly<Record<RefusalReason, string>> = {
  full: "every seat is taken",
  preemption_off: "every seat is taken and nobody may be asked to make room",
  nobody_below: "every seat is taken by someone as important",
  nobody_leaves:
    "every seat is taken, and whoever has one waits for somebody without: raise spawnBudget.maxAgents",
  already_hired: "it is hired already",
  unknown_parent: "this task has no seat itself",
};

/** H4: why somebody was not hired, in words a model can react to. */
export function describeRefusal(
  name: string,
  { reason, holders }: { readonly reason: RefusalReason; readonly holders: readonly SeatHolder[] },
): string {
  const { length } = holders;
  return `${name} was not hired: ${words[reason]} (${length} ${length === 1 ? "seat" : "seats"})`;
}
