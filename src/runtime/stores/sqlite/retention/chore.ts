/** Work in the background, at most once at a time: asked for while it is at it, it is gone over again. */
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

  /** Resolves when all is done that there was to do at the call. */
  ask(): Promise<void> {
    this.#isAsked = true;
    this.#working ??= this.#goOn().finally(() => {
      this.#working = undefined;
    });
    return this.#working;
  }

  /** What is left is for the next to open the store. */
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
