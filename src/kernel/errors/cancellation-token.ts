import { CancellationError, type CancellationStatus } from "./cancellation-error.ts";
import { Fault } from "../base/fault.ts";

export type CancelListener = (error: CancellationError) => void;

/**
 * The cooperative stop button of one task. Knows nothing of deadlines: those are `RunMeta`'s (trap R19).
 *
 * - C1 `cancel` reaches every descendant, never a parent. The first reason stands; later calls change nothing.
 * - A child refers to its parent, and a parent to a child only while someone listens there or below: tokens that are created
 *   and dropped cost nothing. Families may be deep: nothing here recurses.
 */
export class CancellationToken {
  readonly #parent: CancellationToken | undefined;
  /** Children with listeners at or below them. */
  #linked: Set<CancellationToken> | undefined;
  #listeners: Set<CancelListener> | undefined;
  #error: CancellationError | undefined;
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

  /** Everyone is told, also when a listener throws; the first thing thrown then comes out here. */
  cancel(reason = "cancelled", status: CancellationStatus = "cancelled"): void {
    if (this.error !== undefined) return;
    const error = new CancellationError(reason, { status });
    this.#error = error;
    this.#unlink();
    const thrown: unknown[] = [];
    const reached: CancellationToken[] = [this];
    for (let token = reached.pop(); token !== undefined; token = reached.pop()) {
      token.#error ??= error;
      reached.push(...[...(token.#linked ?? [])].toReversed());
      token.#linked?.clear();
      token.#tell(thrown);
    }
    if (thrown.length > 0) throw Fault.from(thrown[0]);
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
    (this.#listeners ??= new Set()).add(entry);
    this.#link();
    return () => {
      if (this.#listeners?.delete(entry) === true) this.#unlink();
    };
  }

  /** Ends an open `wait` without resolving it, so that a long-lived parent lets go of this token. */
  dispose(): void {
    this.#endWait?.();
    this.#endWait = undefined;
    if (!this.cancelled) this.#wait = undefined;
  }

  #tell(thrown: unknown[]): void {
    // A listener that another takes away before its turn is not told.
    for (const listener of this.#listeners ?? []) {
      this.#listeners?.delete(listener);
      try {
        if (this.#error !== undefined) listener(this.#error);
      } catch (problem) {
        thrown.push(problem);
      }
    }
  }

  #link(): void {
    this.#upwards((token, parent) => {
      if (parent.#linked?.has(token) === true) return false;
      (parent.#linked ??= new Set()).add(token);
      return true;
    });
  }

  /** Lets go of every link above that has nothing to listen for any more. */
  #unlink(): void {
    this.#upwards((token, parent) => {
      const isHeard = (token.#listeners?.size ?? 0) > 0 || (token.#linked?.size ?? 0) > 0;
      if (token.#error === undefined && isHeard) return false;
      return parent.#linked?.delete(token) ?? false;
    });
  }

  #upwards(visit: (token: CancellationToken, parent: CancellationToken) => boolean): void {
    if (this.#parent === undefined || !visit(this, this.#parent)) return;
    let token = this.#parent;
    while (token.#parent !== undefined && visit(token, token.#parent)) token = token.#parent;
  }
}

function ignore(): void {}
