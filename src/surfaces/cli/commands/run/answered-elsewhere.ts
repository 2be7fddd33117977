import type { RunHandle } from "../../../../kernel/index.ts";

/**
 * Watches for an answer that another process gives to an approval request, and for the end of the run. `signal` is
 * aborted then. Call `stop` when the watch is no longer needed.
 */
export function answeredElsewhere(
  run: RunHandle,
  approvalId: string,
  fromSeq: number,
): { readonly signal: AbortSignal; readonly stop: () => void } {
  const answered = new AbortController();
  const stopped = new AbortController();
  const watch = async (): Promise<void> => {
    const types = ["approval_decision", "run_end"] as const;
    for await (const event of run.events({ fromSeq, types, signal: stopped.signal })) {
      const isOther = event.type === "approval_decision" && event.data.approvalId !== approvalId;
      if (!isOther) break;
    }
    answered.abort();
  };
  // If the log cannot be read, the loop that follows the run fails with the same error, and the question is withdrawn.
  watch().catch(() => answered.abort());
  return { signal: answered.signal, stop: () => stopped.abort() };
}
