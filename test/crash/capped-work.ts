import type { SpendingCaps } from "../../src/kernel/index.ts";

/** The instructions for a worker that works under caps. */
export interface CappedWork {
  readonly runs: readonly { readonly name: string; readonly userId: string }[];
  readonly caps: SpendingCaps;
  /** When the test began, in epoch milliseconds. */
  readonly startedAt: number;
  /** The time that the workers' clocks show at `startedAt`. */
  readonly noon: number;
}
