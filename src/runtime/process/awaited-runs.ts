import type { EventLoop, RunId } from "../../kernel/index.ts";

/** The runs of this process for whose result a caller waits or may soon wait. Retention does not delete them. */
export class AwaitedRuns {
  readonly #loop: EventLoop;
  /** Number of callers that wait for the result of each run. */
  readonly #callers = new Map<RunId, number>();
  /** Runs that were submitted in this turn of the event loop or in the previous one. */
  #submitted = new Set<RunId>();
  #submittedBefore = new Set<RunId>();

  constructor(loop: EventLoop) {
    this.#loop = loop;
  }

  get ids(): readonly RunId[] {
    return [...this.#callers.keys(), ...this.#submitted, ...this.#submittedBefore];
  }

  /** Keeps a submitted run for at least one turn of the event loop, in which its caller may ask for the result. */
  addSubmitted(runId: RunId): void {
    if (this.#submitted.size === 0 && this.#submittedBefore.size === 0) this.#loop.nextTurn(this.#endTurn);
    this.#submitted.add(runId);
  }

  /** Keeps a run only while a caller waits for its result. */
  async during<Result>(runId: RunId, result: Promise<Result>): Promise<Result> {
    this.#callers.set(runId, (this.#callers.get(runId) ?? 0) + 1);
    this.#submitted.delete(runId);
    this.#submittedBefore.delete(runId);
    try {
      return await result;
    } finally {
      const others = (this.#callers.get(runId) ?? 1) - 1;
      if (others === 0) this.#callers.delete(runId);
      else this.#callers.set(runId, others);
    }
  }

  readonly #endTurn = (): void => {
    this.#submittedBefore = this.#submitted;
    this.#submitted = new Set();
    if (this.#submittedBefore.size > 0) this.#loop.nextTurn(this.#endTurn);
  };
}
