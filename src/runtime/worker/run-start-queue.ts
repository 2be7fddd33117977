import type { EventLoopTurn } from "../process/event-loop-turn.ts";

/**
 * Starts runs one at a time: the next run starts when the runs before it are blocked on I/O. If models answer at once,
 * a run ends before the next one is loaded, so that memory is proportional to the runs in progress and not to the runs
 * claimed: `npm run bench -- loop`, row "memory of the process after them", is 22 % higher without this queue. No run
 * starts in a turn of the event loop that is exhausted, so that timers and sockets are served.
 *
 * The order is first in, first out, regardless of priority. The engine therefore claims few runs ahead and leaves the
 * choice to the store.
 */
export class RunStartQueue {
  readonly #turn: EventLoopTurn;
  readonly #waiting: (() => void)[] = [];
  /** Whether a run has started and may still be able to continue without I/O. */
  #isBusy = false;

  constructor(turn: EventLoopTurn) {
    this.#turn = turn;
  }

  /** Number of runs that wait. */
  get size(): number {
    return this.#waiting.length;
  }

  /** Resolves when the caller may start its run. `undefined` means at once. */
  waitTurn(): Promise<void> | undefined {
    const isFree = !this.#isBusy && !this.#turn.isExhausted;
    if (!this.#isBusy) queueMicrotask(this.#startNextWhenBlocked);
    this.#isBusy = true;
    return isFree ? undefined : new Promise((resolve) => this.#waiting.push(resolve));
  }

  /**
   * Scheduled from a microtask, the tick runs when no microtask is left, that is, when every started run is blocked.
   */
  readonly #startNextWhenBlocked = (): void => process.nextTick(this.#startNext);

  readonly #startNext = (): void => {
    if (this.#waiting.length === 0) this.#isBusy = false;
    else if (this.#turn.isExhausted) setImmediate(this.#startNext);
    else {
      this.#waiting.shift()?.();
      queueMicrotask(this.#startNextWhenBlocked);
    }
  };
}
