import { fromNanoUsd, type TaskId } from "../../src/kernel/index.ts";
import type { RunView } from "../../src/surfaces/view/run-view.ts";
import type { StepView } from "../../src/surfaces/view/step-log.ts";
import type { Snapshot } from "../api/types.ts";

/** What is held for the calls in flight of a task and its reports, in dollars. */
export type Held = (taskId: TaskId) => number;

export const nothingHeld: Held = () => 0;

/** What the ledger of the live run holds. */
export function heldNow(snapshot: Snapshot | null): Held {
  if (snapshot === null) return nothingHeld;
  const { accounts } = snapshot.ledger;
  return (taskId) => {
    const account = accounts[taskId];
    return account === undefined ? 0 : fromNanoUsd(account.reserved.nanoUsd);
  };
}

/**
 * What is held at an earlier event. The log does not record reservations, so this is what the calls in flight at that event
 * cost in the end. Costs O(steps in progress there, and their managers).
 */
export function heldThen(view: RunView, inProgress: readonly StepView[]): Held {
  const { forkedFrom } = view;
  // The origin paid for the calls that a fork shares.
  if (forkedFrom !== null && view.seq <= forkedFrom.at) return nothingHeld;
  const held = new Map<TaskId, number>();
  for (const { kind, taskId, costUsd } of inProgress)
    if (kind === "model" && costUsd !== null && costUsd > 0) addToManagers(held, view, taskId, costUsd);
  return (taskId) => held.get(taskId) ?? 0;
}

function addToManagers(held: Map<TaskId, number>, view: RunView, payer: TaskId, costUsd: number): void {
  for (let id: TaskId | null = payer; id !== null; id = view.tasks.get(id)?.parentId ?? null)
    held.set(id, (held.get(id) ?? 0) + costUsd);
}
