import type { Commit, RunSpend, RunStatus } from "../../kernel/index.ts";

export interface RunEnd {
  readonly status: RunStatus;
  /** Epoch milliseconds. */
  readonly at: number;
}

/**
 * K1: returns the end of the run according to a commit. `null` means that the commit reopens the run, and
 * `undefined` that it changes nothing.
 */
export function endIn({ at, events, tasks }: Commit): RunEnd | null | undefined {
  const last = events?.at(-1);
  if (last?.type === "run_end") return { status: last.data.status, at };
  return tasks?.some(({ type }) => type === "reopen") === true ? null : undefined;
}

const nothingLost = Object.freeze({ tokens: 0, costUsd: 0 });

/** K3: returns what the run has used according to a commit. `undefined` if the commit does not say. */
export function spendIn({ spent, events }: Commit): RunSpend | undefined {
  const last = events?.at(-1);
  if (last?.type !== "run_end") return spent;
  const { usage, costUsd, turns, lost: unreported = nothingLost } = last.data;
  return { usage, costUsd, unreported, turns };
}
