import type { RunId, Store } from "../../../kernel/index.ts";

/** Resolves when no order to go on waits in a run's mailbox. Until then the log of a run that ended is at its end. */
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
