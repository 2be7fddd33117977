/** The turn of the event loop that is under way, as far as it is ours. */
export class EventLoopTurn {
  readonly #longestMs: number;
  #began: number | undefined;

  constructor(longestMs: number) {
    this.#longestMs = longestMs;
  }

  /** Whether timers and sockets have waited long enough. */
  get isExhausted(): boolean {
    const now = performance.now();
    if (this.#began !== undefined) return now - this.#began >= this.#longestMs;
    this.#began = now;
    setImmediate(this.#end);
    return false;
  }

  readonly #end = (): void => {
    this.#began = undefined;
  };
}
