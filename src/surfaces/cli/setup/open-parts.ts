/**
 * The resources that a command has opened. They are closed in reverse order. (Node 22 has no
 * `AsyncDisposableStack`.)
 */
export class OpenParts {
  readonly #closers: (() => PromiseLike<void>)[] = [];

  /** Keeps a part that has a method `close`. */
  add<Part extends { close(): Promise<void> }>(part: Part): Part {
    this.#closers.push(() => part.close());
    return part;
  }

  /**
   * Closes all resources. If one cannot be closed, the others are closed nevertheless, and the first error is
   * thrown.
   */
  async close(): Promise<void> {
    const problems: unknown[] = [];
    for (const close of this.#closers.toReversed()) {
      try {
        await close();
      } catch (error) {
        problems.push(error);
      }
    }
    if (problems.length > 0) throw problems[0];
  }
}
