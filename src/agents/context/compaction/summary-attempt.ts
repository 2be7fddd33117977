import { Fault, stopsTask, type FaultCode } from "../../../kernel/index.ts";
import type { Summarizer, SummaryRequest } from "./summarizer.ts";

/**
 * Faults after which the conversation must not continue without a summary, because the run was lost or the request
 * is wrong.
 */
const mistakes: ReadonlySet<FaultCode> = new Set([
  "invalid_argument",
  "unknown_price",
  "lease_lost",
  "journal_ambiguous",
  "journal_mismatch",
]);

export interface SummaryAttempt {
  readonly summarize: Summarizer;
  /** Called with the reason if there is no summary. The history then does not change. */
  readonly onFailure?: (fault: Fault) => void;
}

/** Returns the summaries, or `undefined` if one of them failed or is empty. */
export async function trySummaries(
  { summarize, onFailure }: SummaryAttempt,
  requests: readonly SummaryRequest[],
): Promise<readonly string[] | undefined> {
  try {
    const summaries = (await summarize(requests)).map((summary) => summary.trim());
    if (summaries.length === requests.length && summaries.every((summary) => summary !== ""))
      return summaries;
    onFailure?.(new Fault("internal", "the summary is empty or was cut at its output limit"));
  } catch (error) {
    const fault = Fault.from(error);
    if (stopsTask(error) || mistakes.has(fault.code)) throw error;
    onFailure?.(fault);
  }
  return undefined;
}
