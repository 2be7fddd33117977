import { setImmediate, setTimeout } from "node:timers/promises";

/** So often the lock is tried again at once, in the next turn of the event loop: most transactions are that short. */
const promptTries = 3;
const longestPauseMs = 20;

/**
 * The pauses between tries for a lock that another process holds: growing, and never the same for two who wait. SQLite's own
 * waiting would stand in the way of everything else in this process.
 */
export class BusyWait {
  readonly #began = performance.now();
  #tries = 0;

  get elapsedMs(): number {
    return performance.now() - this.#began;
  }

  async pause(): Promise<void> {
    const late = ++this.#tries - promptTries;
    if (late <= 0) await setImmediate();
    else await setTimeout(Math.min(1.5 ** late, longestPauseMs) * (0.5 + Math.random()));
  }
}
