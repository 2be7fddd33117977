import { Fault, stopsTask, type FaultCode } from "../../kernel/index.ts";
import type { Summarizer, SummaryRequest } from "./summarizer.ts";

/** The run is not ours any more, or what was asked for is wrong: going on without a summary would hide it. */
const mistakes: ReadonlySet<FaultCode> = new Set([
  "invalid_argument",
  "unknown_price",
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
    if (stopsTask(error) || mistakes.has(fault.code)) throw error;
    onFailure?.(fault);
  }
  return undefined;
}
