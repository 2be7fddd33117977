import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";

/**
 * How long an agent's history is kept. History is removed in the commit that ends the run, whatever its status (trap
 * R14), so a crash cannot prevent it.
 */
export const HistoryRetention = Object.freeze({
  /**
   * The history is never written to the session. When the run ends, its contents (inputs, messages, arguments, results,
   * reasons) are erased from journal and log. Steps, costs, the outcome and the event chain (E1) stay. The run cannot
   * be resumed or forked afterwards.
   */
  NONE: "none",
  /** The history is in the session while the run lives; journal and log keep it. The default of a child. */
  RUN: "run",
  /** The history stays in the session until it is deleted. The default of a root. */
  PERMANENT: "permanent",
});

export type HistoryRetention = (typeof HistoryRetention)[keyof typeof HistoryRetention];

const retentions: readonly unknown[] = Object.values(HistoryRetention);

export function parseHistoryRetention(value: unknown): HistoryRetention {
  if (retentions.includes(value)) return value as HistoryRetention;
  throw new Fault(
    "invalid_argument",
    `invalid history retention ${describeValue(value)}: expected one of ${retentions.join(", ")}`,
  );
}
