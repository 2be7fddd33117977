/** J8: what the code of a task has open besides its steps. Closed when it ends or is let go of, the last first. */
export class TaskResources {
  readonly #onError: (error: unknown) => void;
  #closers: (() => Promise<void>)[] | undefined;
  /** Ends the wait for them. */
  #leave: (() => void) | undefined;

  /** `onError`: of those that could not be closed. */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  get isEmpty(): boolean {
    return this.#closers === undefined;
  }

  add(close: () => Promise<void>): void {
    (this.#closers ??= []).push(close);
  }

  /** Resolves when all are closed, or nobody waits for them any more. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#leave = resolve;
      void this.#closeAll().then(resolve);
    });
  }

  /** They are left as they are. */
  leave(): void {
    this.#leave?.();
  }

  async #closeAll(): Promise<void> {
    const closers = this.#closers ?? [];
    this.#closers = undefined;
    for (const close of closers.toReversed()) {
      try {
        await close();
      } catch (error) {
        this.#onError(error);
      }
    }
  }
}
