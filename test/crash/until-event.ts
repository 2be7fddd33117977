import type { Event, RunId, Store } from "../../src/kernel/index.ts";

/** Follows the log of a run, which may not be there yet, until an event is the one meant. Rejects when the signal aborts first. */
export async function untilEvent(
  store: Store,
  runId: RunId,
  isMeant: (event: Event) => boolean,
  signal: AbortSignal,
): Promise<Event> {
  await untilThere(store, runId, signal);
  for await (const event of store.events.tail(runId, { signal })) {
    if ("seq" in event && isMeant(event)) return event;
  }
  throw new Error(`the log of ${runId} ended, or nobody waits any more, before the event meant`);
}

async function untilThere(store: Store, runId: RunId, signal: AbortSignal): Promise<void> {
  const there = Promise.withResolvers<void>();
  const look = (): void => {
    store.journal.find(runId).then((run) => run !== undefined && there.resolve(), there.reject);
  };
  const forget = store.onChange(look);
  signal.addEventListener("abort", () => there.reject(new Error(`there is no ${runId}`)), { once: true });
  look();
  try {
    await there.promise;
  } finally {
    forget();
  }
}
