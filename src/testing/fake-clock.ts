import type { Clock, IdSource } from "../kernel/index.ts";

interface Timer {
  readonly atMs: number;
  readonly callback: () => void;
}

/** A clock that moves only when a test calls `advance`. */
export class FakeClock implements Clock {
  #now: number;
  readonly #timers = new Set<Timer>();

  constructor(now = 1_700_000_000_000) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  schedule(atMs: number, callback: () => void): () => void {
    const timer = { atMs, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Number of timers that wait. */
  get pending(): number {
    return this.#timers.size;
  }

  /**
   * Moves the clock forward by `ms` and fires the due timers in order. All promises that a timer resolves settle before
   * the next timer fires.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.atMs);
      next.callback();
      await settle();
    }
    this.#now = end;
  }

  #next(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.atMs <= end && (first === undefined || timer.atMs < first.atMs)) first = timer;
    }
    return first;
  }
}

/**
 * Returns a source of predictable ids that count up, so that a test can name them: `1`, `2`, or with a prefix `a-1`,
 * `a-2`.
 */
export function sequentialIds(prefix = ""): IdSource {
  let count = 0;
  return { next: () => `${prefix}${prefix === "" ? "" : "-"}${++count}` };
}

/** Waits until every promise that needs neither time nor I/O has settled. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
