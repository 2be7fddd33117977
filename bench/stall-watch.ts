import { readFileSync } from "node:fs";

/**
 * The longest time in which the event loop of this process did not turn, less what the process spent waiting for a processor: four
 * processes on two processors wait for each other whatever they do, and that says nothing of a store. Where the system does not tell
 * (it is Linux that does), nothing is taken off.
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
