import type { Commit, RunStatus } from "../../kernel/index.ts";

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
