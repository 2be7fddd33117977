import type { Event, RunId, Store } from "../../src/kernel/index.ts";

/**
 * Waits for the run to exist and for an event that satisfies `isMeant`. Rejects if the signal aborts or the log ends
 * first.
 */
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
  throw new Error(`the log of ${runId} ended or the wait was aborted before the expected event`);
}

async function untilThere(store: Store, runId: RunId, signal: AbortSignal): Promise<void> {
  const there = Promise.withResolvers<void>();
  const look = (): void => {
    store.journal.find(runId).then((run) => run !== undefined && there.resolve(), there.reject);
  };
  const forget = store.onChange(look);
  signal.addEventListener(
    "abort",
    () => there.reject(new Error(`${runId} was not created before the wait was aborted`)),
    { once: true },
  );
  look();
  try {
    await there.promise;
  } finally {
    forget();
  }
}
