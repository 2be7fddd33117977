import type { Clock } from "../../kernel/index.ts";
import { objectArray } from "./object-array.ts";

export class CallTimeout {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly late: () => void;
  /** Among those that are open. */
  place = -1;

  constructor(at: number, late: () => void) {
    this.at = at;
    this.late = late;
  }
}

/**
 * Until when calls may take. One timer of the clock for all of them: most calls are over long before it would go off, and each timer of its
 * own costs more than a short call.
 */
export class CallTimeouts {
  readonly #clock: Clock;
  readonly #open = objectArray<CallTimeout>();
  #armedFor = Number.POSITIVE_INFINITY;
  #disarm: (() => void) | undefined;
  #looksSoon = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(timer: CallTimeout): void {
    timer.place = this.#open.push(timer) - 1;
    if (timer.at < this.#armedFor) this.#arm(timer.at);
  }

  remove(timer: CallTimeout): void {
    this.#take(timer);
    if (this.#open.length > 0 || this.#looksSoon) return;
    this.#looksSoon = true;
    // The next call may be a moment away. Left armed, the timer would keep the process alive.
    setImmediate(() => {
      this.#looksSoon = false;
      if (this.#open.length === 0) this.#rest();
    });
  }

  /** The last takes its place. */
  #take(timer: CallTimeout): void {
    if (this.#open[timer.place] !== timer) return;
    const last = this.#open.pop();
    if (last !== undefined && last !== timer) {
      this.#open[timer.place] = last;
      last.place = timer.place;
    }
    timer.place = -1;
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
    const open = this.#open.slice();
    for (const timer of open) {
      if (timer.at <= now) {
        this.#take(timer);
        timer.late();
      } else if (timer.at < next) next = timer.at;
    }
    if (next < this.#armedFor) this.#arm(next);
  }
}
