/** J8: resources that the code of a task has opened with `ctx.resource`. They are closed, the last one first, when the task ends or is dropped. */
export class TaskResources {
  readonly #onError: (error: unknown) => void;
  #closers: (() => Promise<void>)[] | undefined;
  /** Resolves the promise of `close` early. */
  #stopWaiting: (() => void) | undefined;

  /** `onError` receives the error of each resource that could not be closed. */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  get isEmpty(): boolean {
    return this.#closers === undefined;
  }

  add(close: () => Promise<void>): void {
    (this.#closers ??= []).push(close);
  }

  /** Resolves once all resources are closed, or `abandon` is called. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#stopWaiting = resolve;
      void this.#closeAll().then(resolve);
    });
  }

  /** Stops waiting for resources that are still closing. */
  abandon(): void {
    this.#stopWaiting?.();
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
