import { CancellationError, type CancellationStatus } from "./cancellation-error.ts";
import { Fault } from "./fault.ts";

export type CancelListener = (error: CancellationError) => void;

/**
 * The cooperative stop button of one task. Knows nothing of deadlines: those are `RunMeta`'s (trap R19).
 *
 * - C1 `cancel` reaches every descendant, never a parent. The first reason stands; later calls change nothing.
 * - A child refers to its parent and not the other way round, except while someone listens to the child: tokens that are
 *   created and dropped cost nothing.
 */
export class CancellationToken {
  readonly #parent: CancellationToken | undefined;
  #error: CancellationError | undefined;
  readonly #listeners = new Set<CancelListener>();
  #leaveParent: (() => void) | undefined;
  #wait: Promise<CancellationError> | undefined;
  #endWait: (() => void) | undefined;

  /** Without a parent: the root of a family of tokens. */
  constructor(parent?: CancellationToken) {
    this.#parent = parent;
  }

  /** The error `check` throws, or `undefined` while nobody cancelled. */
  get error(): CancellationError | undefined {
    if (this.#error !== undefined) return this.#error;
    let ancestor = this.#parent;
    while (ancestor !== undefined && ancestor.#error === undefined) ancestor = ancestor.#parent;
    if (ancestor !== undefined) this.#error = ancestor.#error;
    return this.#error;
  }

  get cancelled(): boolean {
    return this.error !== undefined;
  }

  cancel(reason = "cancelled", status: CancellationStatus = "cancelled"): void {
    if (this.error !== undefined) return;
    this.#settle(new CancellationError(reason, { status }));
  }

  /** Throws the `CancellationError` if this token or an ancestor was cancelled. */
  check(): void {
    const { error } = this;
    if (error !== undefined) throw error;
  }

  /** Resolves with the error once cancelled. Call `dispose` when done with a token that was waited on but not cancelled. */
  wait(): Promise<CancellationError> {
    this.#wait ??= new Promise((resolve) => {
      this.#endWait = this.onCancel(resolve);
    });
    return this.#wait;
  }

  child(): CancellationToken {
    return new CancellationToken(this);
  }

  /** Calls back once; at once if cancelled already. The returned function stops listening. */
  onCancel(listener: CancelListener): () => void {
    const { error } = this;
    if (error !== undefined) {
      listener(error);
      return ignore;
    }
    // Wrapped, so that one function given twice is two listeners.
    const entry: CancelListener = (cancellation) => listener(cancellation);
    this.#listeners.add(entry);
    this.#leaveParent ??= this.#parent?.onCancel((cancellation) => this.#settle(cancellation));
    return () => {
      this.#listeners.delete(entry);
      if (this.#listeners.size === 0) this.#leave();
    };
  }

  /** Ends an open `wait` without resolving it, so that a long-lived parent lets go of this token. */
  dispose(): void {
    this.#endWait?.();
    this.#endWait = undefined;
    if (!this.cancelled) this.#wait = undefined;
  }

  #leave(): void {
    this.#leaveParent?.();
    this.#leaveParent = undefined;
  }

  #settle(error: CancellationError): void {
    if (this.#error !== undefined && this.#listeners.size === 0) return;
    this.#error ??= error;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    this.#leave();
    const thrown: unknown[] = [];
    for (const listener of listeners) {
      try {
        listener(this.#error);
      } catch (problem) {
        thrown.push(problem);
      }
    }
    // Everyone has been told by now; a listener's own fault still reaches whoever cancelled.
    if (thrown.length > 0) throw Fault.from(thrown[0]);
  }
}

function ignore(): void {}
