/** Measures how long the current turn of the event loop has lasted, from the first time it was asked. */
export class EventLoopTurn {
  readonly #maxMs: number;
  #startedAt: number | undefined;

  constructor(maxMs: number) {
    this.#maxMs = maxMs;
  }

  /** Whether the turn has lasted `maxMs`, so that timers and sockets should be served first. */
  get isExhausted(): boolean {
    const now = performance.now();
    if (this.#startedAt !== undefined) return now - this.#startedAt >= this.#maxMs;
    this.#startedAt = now;
    setImmediate(this.#end);
    return false;
  }

  readonly #end = (): void => {
    this.#startedAt = undefined;
  };
}
