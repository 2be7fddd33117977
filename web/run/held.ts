import { fromNanoUsd, type TaskId } from "../../src/kernel/index.ts";
import type { RunView } from "../../src/surfaces/view/run-view.ts";
import type { StepLog } from "../../src/surfaces/view/step-log.ts";
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
 * cost in the end. Costs O(tasks, and steps of the tasks with calls in flight).
 */
export function heldThen(view: RunView, steps: StepLog): Held {
  const { forkedFrom } = view;
  // The origin paid for the calls that a fork shares.
  if (forkedFrom !== null && view.seq <= forkedFrom.at) return nothingHeld;
  const held = new Map<TaskId, number>();
  for (const task of view.tasks) {
    if (task.openCalls === 0) continue;
    let costUsd = 0;
    for (const step of steps.of(task.taskId))
      if (step.kind === "model" && step.startSeq <= view.seq && (step.endSeq ?? Infinity) > view.seq)
        costUsd += step.costUsd ?? 0;
    if (costUsd > 0) addToManagers(held, view, task.taskId, costUsd);
  }
  return (taskId) => held.get(taskId) ?? 0;
}

function addToManagers(held: Map<TaskId, number>, view: RunView, payer: TaskId, costUsd: number): void {
  for (let id: TaskId | null = payer; id !== null; id = view.tasks.get(id)?.parentId ?? null)
    held.set(id, (held.get(id) ?? 0) + costUsd);
}
