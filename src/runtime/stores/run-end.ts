import type { Commit, RunSpend, RunStatus } from "../../kernel/index.ts";

export interface RunEnd {
  readonly status: RunStatus;
  /** Epoch milliseconds. */
  readonly at: number;
}

/**
 * K1: how a commit changes whether its run has ended. `null` means that it reopens the run, `undefined` that it changes
 * nothing.
 */
export function endIn({ at, events, tasks }: Commit): RunEnd | null | undefined {
  const last = events?.at(-1);
  if (last?.type === "run_end") return { status: last.data.status, at };
  return tasks?.some(({ type }) => type === "reopen") === true ? null : undefined;
}

const nothingLost = Object.freeze({ tokens: 0, costUsd: 0 });

/** K3: what a commit says that its run has used. `undefined` if it says nothing. */
export function spendIn({ spent, events }: Commit): RunSpend | undefined {
  const last = events?.at(-1);
  if (last?.type !== "run_end") return spent;
  const { usage, costUsd, turns, lost: unreported = nothingLost } = last.data;
  return { usage, costUsd, unreported, turns };
}
