/** Background work that runs at most once at a time. A request while it runs starts it again afterwards. */
export class Chore {
  readonly #work: () => Promise<void>;
  #isAsked = false;
  #isStopped = false;
  #working: Promise<void> | undefined;

  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Resolves when all work that existed at the time of the call is done. */
  ask(): Promise<void> {
    this.#isAsked = true;
    this.#working ??= this.#goOn().finally(() => {
      this.#working = undefined;
    });
    return this.#working;
  }

  /** Stops after the current part. The next process that opens the store does the remaining work. */
  stop(): void {
    this.#isStopped = true;
  }

  async #goOn(): Promise<void> {
    while (this.#isAsked) {
      this.#isAsked = false;
      await this.#work();
    }
  }
}
