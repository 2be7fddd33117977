import type { RunId, Store } from "../../kernel/index.ts";

/** Whether the run's mailbox contains a message that resumes the run. */
export async function hasOrders({ mailbox }: Pick<Store, "mailbox">, runId: RunId): Promise<boolean> {
  const mail = await mailbox.read(runId);
  return mail.some(({ body }) => body.type === "resume" || body.type === "top_up");
}

/**
 * Resolves when the run's mailbox contains no message that resumes the run. Until then, the end of the log is not the
 * end of the run. Also resolves when the signal aborts.
 */
export async function obeyedOrders(
  store: Pick<Store, "mailbox" | "onChange">,
  runId: RunId,
  signal?: AbortSignal,
): Promise<void> {
  for (;;) {
    const changed = Promise.withResolvers<void>();
    const wake = (): void => changed.resolve();
    const forget = store.onChange(wake);
    signal?.addEventListener("abort", wake, { once: true });
    try {
      if (signal?.aborted === true || !(await hasOrders(store, runId))) return;
      await changed.promise;
    } finally {
      forget();
      signal?.removeEventListener("abort", wake);
    }
  }
}
