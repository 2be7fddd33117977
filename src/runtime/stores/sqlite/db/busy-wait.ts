import { setImmediate, setTimeout } from "node:timers/promises";

/**
 * Number of retries in the next turns of the event loop, before timers are used. Most transactions end within this
 * time.
 */
const promptTries = 3;
const longestPauseMs = 20;

/**
 * Pauses between attempts to get a lock that another process holds. They grow and are partly random, so that two
 * waiting processes do not always try at the same time. SQLite's own busy handler would block the event loop.
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
