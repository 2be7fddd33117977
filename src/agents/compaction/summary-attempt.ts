import { Fault, type FaultCode } from "../../kernel/index.ts";
import type { Summarizer, SummaryRequest } from "./summarizer.ts";

/** These end the task, or mean that it is wrong or not ours any more: going on without a summary would hide them. */
const stops: ReadonlySet<FaultCode> = new Set([
  "cancelled",
  "budget_exhausted",
  "guardrail_tripped",
  "unknown_price",
  "invalid_argument",
  "lease_lost",
  "journal_ambiguous",
  "journal_mismatch",
]);

export interface SummaryAttempt {
  readonly summarize: Summarizer;
  /** Told why there is no summary; the history stays as it was. */
  readonly onFailure?: (fault: Fault) => void;
}

/** `undefined`: one of them failed or is empty. */
export async function trySummaries(
  { summarize, onFailure }: SummaryAttempt,
  requests: readonly SummaryRequest[],
): Promise<readonly string[] | undefined> {
  try {
    const summaries = (await summarize(requests)).map((summary) => summary.trim());
    if (summaries.length === requests.length && summaries.every((summary) => summary !== ""))
      return summaries;
    onFailure?.(new Fault("internal", "the summary is empty or was cut short"));
  } catch (error) {
    const fault = Fault.from(error);
    if (stops.has(fault.code)) throw error;
    onFailure?.(fault);
  }
  return undefined;
}
