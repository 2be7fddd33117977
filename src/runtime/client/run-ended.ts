import type { Lifetime, RunId } from "../../kernel/index.ts";
import type { RunStore } from "./run-store.ts";

/** Resolves when the run has ended, whichever process drives it. Rejects when the lifetime ends. */
export async function runEnded(
  { journal, events }: Pick<RunStore, "journal" | "events">,
  runId: RunId,
  life: Lifetime,
): Promise<void> {
  let fromSeq = 0;
  for (;;) {
    const summary = await journal.summary(runId);
    if (summary === undefined || summary.endedAt !== null) return;
    // A run that was resumed has ended before.
    for await (const event of events.tail(runId, { fromSeq, types: ["run_end"], life }))
      if ("seq" in event) fromSeq = event.seq + 1;
  }
}
