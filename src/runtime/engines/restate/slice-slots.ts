import { Fault } from "../../../kernel/index.ts";

/** Why a slice is refused whose attempt Restate has ended. */
export const givenUp = "Restate no longer waits for this slice";

/**
 * Bounds how many slices of a worker work at the same time. A slice whose run only waits takes no slot. A slice that finds
 * no free slot waits, in the order of arrival. It has not claimed its run yet, so it holds no lease meanwhile.
 */
export class SliceSlots {
  /** Below 0 while runs that only waited have continued although all slots were taken. */
  #free: number;
  /** The waiting slices, the oldest first. */
  readonly #waiting = new Set<PromiseWithResolvers<void>>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves when the slice may begin. Rejects with `closed` if `signal` aborts or the worker closes first. */
  async take(signal: AbortSignal): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    const turn = Promise.withResolvers<void>();
    const leave = (): void => this.#refuse(turn, givenUp);
    this.#waiting.add(turn);
    signal.addEventListener("abort", leave);
    try {
      await turn.promise;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  /** A slice has ended, or its run only waits. */
  give(): void {
    const [next] = this.#waiting;
    if (this.#free < 0 || next === undefined) this.#free++;
    else if (this.#waiting.delete(next)) next.resolve();
  }

  /** A run that only waited continues. It does not wait for a slot, because its slice holds the lease. */
  takeBack(): void {
    this.#free--;
  }

  /** Refuses the waiting slices, so that Restate lets other workers drive their runs. */
  close(): void {
    for (const turn of this.#waiting)
      this.#refuse(turn, "this worker is closing; another one drives the run");
  }

  #refuse(turn: PromiseWithResolvers<void>, reason: string): void {
    if (this.#waiting.delete(turn)) turn.reject(new Fault("closed", reason));
  }
}
