import type { CancelSignal, Clock } from "../../kernel/index.ts";

/** Waits by the clock handed in. A signal that aborts ends it at once, with the signal's reason thrown. */
export function pause(clock: Clock, ms: number, signal: CancelSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = (): void => {
      cancel();
      signal.removeEventListener("abort", stop);
      reject(signal.reason);
    };
    const cancel = clock.schedule(clock.now() + ms, () => {
      signal.removeEventListener("abort", stop);
      resolve();
    });
    signal.addEventListener("abort", stop);
  });
}
