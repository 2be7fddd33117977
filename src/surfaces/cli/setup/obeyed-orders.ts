import type { RunId, Store } from "../../../kernel/index.ts";

/**
 * Resolves when the run's mailbox contains no message that resumes the run. Until then, the end of the log is not the
 * end of the run.
 */
export async function obeyedOrders(store: Store, runId: RunId): Promise<void> {
  for (;;) {
    const changed = Promise.withResolvers<void>();
    const forget = store.onChange(() => changed.resolve());
    try {
      const mail = await store.mailbox.read(runId);
      if (!mail.some(({ body }) => body.type === "resume" || body.type === "top_up")) return;
      await changed.promise;
    } finally {
      forget();
    }
  }
}
