import type { RefusalReason, SeatHolder } from "./headcount.ts";

const words: Readonly<Record<RefusalReason, string>> = {
  full: "every seat is taken",
  preemption_off: "every seat is taken and preemption is switched off",
  nobody_below: "every seat is taken by a task of the same or a higher priority",
  nobody_leaves:
    "every seat is held by a task that waits for a task without a seat; raise spawnBudget.maxAgents",
  already_hired: "it was spawned already",
  unknown_parent: "the spawning task has no seat itself",
};

/** H4: explains to a model why a sub-agent was not spawned. */
export function describeRefusal(
  name: string,
  { reason, holders }: { readonly reason: RefusalReason; readonly holders: readonly SeatHolder[] },
): string {
  const { length } = holders;
  return `${name} was not spawned: ${words[reason]} (${length} ${length === 1 ? "seat" : "seats"})`;
}
