import type { EventLoop } from "../../kernel/index.ts";

/** Measures how long the current turn of the event loop has lasted, from the first query on. */
export class EventLoopTurn {
  readonly #loop: EventLoop;
  readonly #maxMs: number;
  #startedAt: number | undefined;

  constructor(loop: EventLoop, maxMs: number) {
    this.#loop = loop;
    this.#maxMs = maxMs;
  }

  /** Whether the turn has lasted `maxMs`, so that timers and network events should be handled first. */
  get isExhausted(): boolean {
    const now = this.#loop.elapsed();
    if (this.#startedAt !== undefined) return now - this.#startedAt >= this.#maxMs;
    this.#startedAt = now;
    this.#loop.nextTurn(this.#end);
    return false;
  }

  readonly #end = (): void => {
    this.#startedAt = undefined;
  };
}
