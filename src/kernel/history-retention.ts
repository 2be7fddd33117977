import { describeValue } from "./describe-value.ts";
import { Fault } from "./fault.ts";

/** How long an agent's history is kept after its run ends. */
export const HistoryRetention = Object.freeze({
  /** Never stored: a stateless worker. */
  NONE: "none",
  /** Kept while the run lives, then deleted, however the run ended (trap R14). The default of a child. */
  RUN: "run",
  /** Kept until someone deletes it. The default of a root. */
  PERMANENT: "permanent",
});

export type HistoryRetention = (typeof HistoryRetention)[keyof typeof HistoryRetention];

export function parseHistoryRetention(value: unknown): HistoryRetention {
  const found = Object.values(HistoryRetention).find((each) => each === value);
  if (found === undefined) {
    const known = Object.values(HistoryRetention).join(", ");
    throw new Fault("invalid_argument", `${describeValue(value)} is not a history retention: use ${known}`);
  }
  return found;
}
