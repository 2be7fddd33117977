import { noUsage, type Usage } from "../messages/usage.ts";
import type { UnreportedSpend } from "./run-result.ts";

/** What a run has used. A fork starts with nothing. */
export interface RunSpend {
  /** Usage of all tasks of the run, as providers reported it. */
  readonly usage: Usage;
  /** Total charge, including `unreported`. `null` if a price is unknown. */
  readonly costUsd: number | null;
  /** B3: charge for calls that ended without reported usage. */
  readonly unreported: UnreportedSpend;
  /** Number of turns of all tasks of the run. */
  readonly turns: number;
}

/** What a run has used before its first model call. */
export const nothingSpent: RunSpend = Object.freeze({
  usage: noUsage,
  costUsd: 0,
  unreported: Object.freeze({ tokens: 0, costUsd: 0 }),
  turns: 0,
});
