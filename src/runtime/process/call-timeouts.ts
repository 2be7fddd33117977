import type { Clock, EventLoop } from "../../kernel/index.ts";

/** A timeout that can be added to `CallTimeouts`. */
export interface PendingTimeout {
  /** Time at which the call times out. Epoch milliseconds. */
  readonly at: number;
  /** Index in the list of pending timeouts. -1 if the timeout is not pending. */
  index: number;
  onTimeout(): void;
}

/** The timeout of one call. */
export class CallTimeout implements PendingTimeout {
  readonly at: number;
  readonly onTimeout: () => void;
  index = -1;

  constructor(at: number, onTimeout: () => void) {
    this.at = at;
    this.onTimeout = onTimeout;
  }
}

/**
 * The timeouts of all calls of a worker. They share one timer, which is set to the earliest timeout. Most calls end
 * long before their timeout, and a timer per call would add 11 to 16 % to `npm run bench -- tools`, rows "ctx.tool
 * in memory".
 */
export class CallTimeouts {
  readonly #clock: Clock;
  readonly #loop: EventLoop;
  readonly #pending: PendingTimeout[] = [];
  /** The time for which the timer is set. Epoch milliseconds. */
  #timerAt = Number.POSITIVE_INFINITY;
  #clearTimer: (() => void) | undefined;
  #isCheckScheduled = false;

  constructor(clock: Clock, loop: EventLoop) {
    this.#clock = clock;
    this.#loop = loop;
  }

  add(timeout: PendingTimeout): void {
    timeout.index = this.#pending.push(timeout) - 1;
    if (timeout.at < this.#timerAt) this.#setTimer(timeout.at);
  }

  remove(timeout: PendingTimeout): void {
    this.#delete(timeout);
    if (this.#pending.length > 0 || this.#isCheckScheduled) return;
    this.#isCheckScheduled = true;
    // A timer without a pending timeout would keep the process alive. It is cleared a moment later, because the next
    // call may start at once.
    this.#loop.nextTurn(() => {
      this.#isCheckScheduled = false;
      if (this.#pending.length === 0) this.#resetTimer();
    });
  }

  /** Drops all timeouts, because the worker has closed. A call that never settles must not keep the process alive. */
  close(): void {
    for (const timeout of this.#pending.splice(0)) timeout.index = -1;
    this.#resetTimer();
  }

  /** Removes a timeout, and moves the last timeout to its index. */
  #delete(timeout: PendingTimeout): void {
    if (this.#pending[timeout.index] !== timeout) return;
    const last = this.#pending.pop();
    if (last !== undefined && last !== timeout) {
      this.#pending[timeout.index] = last;
      last.index = timeout.index;
    }
    timeout.index = -1;
  }

  #setTimer(at: number): void {
    this.#clearTimer?.();
    this.#timerAt = at;
    this.#clearTimer = this.#clock.schedule(at, () => this.#onTimer());
  }

  #resetTimer(): void {
    this.#clearTimer?.();
    this.#clearTimer = undefined;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #onTimer(): void {
    this.#resetTimer();
    const now = this.#clock.now();
    let next = Number.POSITIVE_INFINITY;
    const pending = this.#pending.slice();
    for (const timeout of pending) {
      if (timeout.at <= now) {
        this.#delete(timeout);
        timeout.onTimeout();
      } else if (timeout.at < next) next = timeout.at;
    }
    if (next < this.#timerAt) this.#setTimer(next);
  }
}
