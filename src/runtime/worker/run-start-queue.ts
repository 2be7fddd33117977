import { objectArray } from "../process/object-array.ts";
import type { EventLoopTurn } from "../process/event-loop-turn.ts";

/**
 * Runs are begun one after the other, each when those before it have gone as far as they can without waiting. Where models answer at once,
 * one is over before the next is loaded: what is alive does not grow with the runs there are. None begins in a turn of the
 * event loop that has lasted long, which would last as long as there are runs.
 *
 * Who waits here is begun in the order in which it came, whatever its rank: whoever chooses among runs lets few of them wait.
 */
export class RunStartQueue {
  readonly #turn: EventLoopTurn;
  readonly #waiting = objectArray<() => void>();
  #isBusy = false;

  constructor(turn: EventLoopTurn) {
    this.#turn = turn;
  }

  /** How many wait. */
  get size(): number {
    return this.#waiting.length;
  }

  /** When its caller may begin. Nothing to wait for if nobody has begun in this breath. */
  waitTurn(): Promise<void> | undefined {
    const isFree = !this.#isBusy && !this.#turn.isExhausted;
    if (!this.#isBusy) queueMicrotask(this.#startNextSoon);
    this.#isBusy = true;
    return isFree ? undefined : new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Out of a microtask, the tick comes when there is no other left: nobody has anything to do but to wait. */
  readonly #startNextSoon = (): void => process.nextTick(this.#startNext);

  readonly #startNext = (): void => {
    if (this.#waiting.length === 0) this.#isBusy = false;
    else if (this.#turn.isExhausted) setImmediate(this.#startNext);
    else {
      this.#waiting.shift()?.();
      queueMicrotask(this.#startNextSoon);
    }
  };
}
