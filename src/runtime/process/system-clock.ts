import type { Clock } from "../../kernel/index.ts";

/** `setTimeout` takes at most this many milliseconds; further off, it fires at once. */
const longestTimer = 2 ** 31 - 1;

/** The machine's clock. A timer keeps the process alive unless told: whoever waits for a retry or a sleep is not cut off. */
export const systemClock: Clock = {
  now: () => Date.now(),
  schedule(atMs, callback, { background = false } = {}) {
    let timer: NodeJS.Timeout;
    const arm = (): void => {
      const leftMs = atMs - Date.now();
      timer = setTimeout(leftMs > longestTimer ? arm : callback, Math.min(Math.max(leftMs, 0), longestTimer));
      if (background) timer.unref();
    };
    arm();
    return () => clearTimeout(timer);
  },
};
