import { readFileSync } from "node:fs";

/**
 * Measures the longest time in which the event loop of this process did not turn, less the time that the process waited
 * for a processor. Processes on too few processors wait for each other, which says nothing about a store. Only Linux
 * reports this wait; elsewhere nothing is subtracted.
 */
export class StallWatch {
  #longestMs = 0;
  #last = performance.now();
  #waited = waitedMs();
  #timer: NodeJS.Timeout | undefined;

  start(): void {
    this.#last = performance.now();
    this.#waited = waitedMs();
    this.#timer = setInterval(this.#look, everyMs);
  }

  /** Milliseconds. */
  stop(): number {
    clearInterval(this.#timer);
    return this.#longestMs;
  }

  readonly #look = (): void => {
    const waited = waitedMs();
    const now = performance.now();
    this.#longestMs = Math.max(this.#longestMs, now - this.#last - everyMs - (waited - this.#waited));
    this.#last = now;
    this.#waited = waited;
  };
}

const everyMs = 1;

/** How long this process's main thread has been ready to run and had no processor, in all. */
function waitedMs(): number {
  if (process.platform !== "linux") return 0;
  const [, waitedNs = "0"] = readFileSync("/proc/self/schedstat", "utf8").split(" ");
  return Number(waitedNs) / 1e6;
}
