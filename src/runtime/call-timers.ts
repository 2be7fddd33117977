import type { Clock } from "../kernel/index.ts";

export interface CallTimer {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly late: () => void;
}

/**
 * Until when calls may take. One timer of the clock for all of them: most calls are over long before it would go off, and each timer of its
 * own costs more than a short call.
 */
export class CallTimers {
  readonly #clock: Clock;
  readonly #open = new Set<CallTimer>();
  #armedFor = Number.POSITIVE_INFINITY;
  #disarm: (() => void) | undefined;
  #looksSoon = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(timer: CallTimer): void {
    this.#open.add(timer);
    if (timer.at < this.#armedFor) this.#arm(timer.at);
  }

  remove(timer: CallTimer): void {
    this.#open.delete(timer);
    if (this.#open.size > 0 || this.#looksSoon) return;
    this.#looksSoon = true;
    // The next call may be a moment away. Left armed, the timer would keep the process alive.
    setImmediate(() => {
      this.#looksSoon = false;
      if (this.#open.size === 0) this.#rest();
    });
  }

  #arm(at: number): void {
    this.#disarm?.();
    this.#armedFor = at;
    this.#disarm = this.#clock.schedule(at, () => this.#goOff());
  }

  #rest(): void {
    this.#disarm?.();
    this.#disarm = undefined;
    this.#armedFor = Number.POSITIVE_INFINITY;
  }

  #goOff(): void {
    this.#rest();
    const now = this.#clock.now();
    let next = Number.POSITIVE_INFINITY;
    for (const timer of this.#open) {
      if (timer.at <= now) {
        this.#open.delete(timer);
        timer.late();
      } else if (timer.at < next) next = timer.at;
    }
    if (next < this.#armedFor) this.#arm(next);
  }
}
