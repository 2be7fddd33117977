import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";

/**
 * How long an agent's history is kept. The commit that ends the run removes the history, whatever the status of the
 * run (trap R14), so that a crash cannot prevent the removal.
 */
export const HistoryRetention = Object.freeze({
  /**
   * The history is never written to the session. When the run ends, inputs, messages, arguments, results and
   * reasons are erased from its journal and log. Steps, costs, the outcome and the event chain (E1) stay. The run
   * cannot be resumed or forked afterwards.
   */
  NONE: "none",
  /** The history is in the session until the run ends; journal and log keep it. This is the default of a child. */
  RUN: "run",
  /** The history stays in the session until a person or a program deletes it. This is the default of a root. */
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
