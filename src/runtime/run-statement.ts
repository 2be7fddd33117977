import {
  fromNanoUsd,
  outcomeStatus,
  type EventData,
  type TaskId,
  type TaskOutcome,
} from "../kernel/index.ts";
import type { RunState, TaskState } from "./run-state.ts";

/** What the last event of a run says of it: how it ended, what was used, what was charged, and what of that was lost (B3). */
export function runStatement(state: RunState, root: TaskId): EventData["run_end"] {
  const { usage, ledger } = state;
  const account = ledger.accounts[root];
  const isKnown = (account?.unpriced ?? 0) === 0;
  const usd = (nanoUsd = 0): number | null => (isKnown ? fromNanoUsd(nanoUsd) : null);
  return {
    status: outcomeStatus(state.task(root).outcome),
    usage,
    costUsd: usd(account?.spent.nanoUsd),
    turns: account?.spent.turns ?? 0,
    lost: { tokens: account?.lost.tokens ?? 0, costUsd: usd(account?.lost.nanoUsd) },
  };
}

export function endStatement(task: TaskState, outcome: TaskOutcome): EventData["task_end"] {
  const { status, output, failure, interruption } = outcome;
  return {
    status,
    output,
    ...(failure && { failure }),
    ...(interruption && { interruption }),
    usage: task.usage,
    ...(task.reopened && { again: true }),
  };
}
