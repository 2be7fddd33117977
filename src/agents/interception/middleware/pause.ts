import type { CancelSignal, Clock } from "../../../kernel/index.ts";

/** Waits by the given clock. If the signal aborts, throws the signal's reason. */
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
