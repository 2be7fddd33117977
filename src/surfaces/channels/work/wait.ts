import type { Clock } from "../../../kernel/index.ts";

/** Resolves after a time, or immediately when the signal aborts. The timer does not keep the process alive. */
export function wait(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const cancel = clock.schedule(clock.now() + ms, done, { background: true });
    signal.addEventListener("abort", done, { once: true });
  });
}

/**
 * Returns the delay before the next attempt, in milliseconds: 1 s, doubled with each failed attempt up to 5
 * minutes, with jitter.
 */
export function backoffMs(failures: number): number {
  const full = Math.min(300_000, 1_000 * 2 ** Math.min(failures, 9));
  return Math.round(full * (0.5 + Math.random() / 2));
}
