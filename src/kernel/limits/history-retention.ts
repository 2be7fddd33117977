import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";

/**
 * How long an agent's history is kept. What goes, goes with the commit that ends the run, however it ended (trap R14): nothing is left
 * to do that a crash could prevent.
 */
export const HistoryRetention = Object.freeze({
  /**
   * Never in the session, and with the run's end its words are erased from journal and log: inputs, messages, arguments, results, reasons.
   * What it did and its outcome stay, and so does the events' chain (E1). It cannot be resumed or forked after that.
   */
  NONE: "none",
  /** In the session while the run lives; journal and log keep it. The default of a child. */
  RUN: "run",
  /** In the session until someone deletes it. The default of a root. */
  PERMANENT: "permanent",
});

export type HistoryRetention = (typeof HistoryRetention)[keyof typeof HistoryRetention];

const retentions: readonly unknown[] = Object.values(HistoryRetention);

export function parseHistoryRetention(value: unknown): HistoryRetention {
  if (retentions.includes(value)) return value as HistoryRetention;
  throw new Fault(
    "invalid_argument",
    `${describeValue(value)} is not a history retention: use ${retentions.join(", ")}`,
  );
}
