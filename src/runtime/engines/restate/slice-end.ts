/**
 * Decides when a slice starts no further call: after its time, but not before its run has recorded a step or only waits. Otherwise a
 * run whose journal takes longer to load than a slice lasts would be loaded again and again.
 */
export class SliceEnd {
  readonly #controller = new AbortController();
  #isDue = false;
  #hasStep = false;
  #isIdle = false;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The time of the slice is over. */
  readonly noteDue = (): void => {
    this.#isDue = true;
    this.#decide();
  };

  /** The run has recorded a step. */
  readonly noteStep = (): void => {
    this.#hasStep = true;
    this.#decide();
  };

  /** The run only waits, or it continues. */
  noteIdle(isIdle: boolean): void {
    this.#isIdle = isIdle;
    this.#decide();
  }

  /** Ends the slice in any case. */
  readonly now = (): void => this.#controller.abort();

  #decide(): void {
    if (this.#isDue && (this.#hasStep || this.#isIdle)) this.now();
  }
}
