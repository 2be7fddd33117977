import { Fault, hasCode } from "../base/fault.ts";
import type { JsonValue } from "../base/json-value.ts";

/** Why a task was cancelled: by a request, or because its deadline passed (B5). The task ends with this status. */
export type CancellationStatus = "cancelled" | "deadline_exceeded";

export interface CancellationOptions {
  readonly status?: CancellationStatus;
  readonly cause?: unknown;
  readonly partial?: string;
  readonly childOutput?: JsonValue;
}

/**
 * The error that `check()` throws in a cancelled task (C2). The reason of the cancel reaches every descendant (C1).
 */
export class CancellationError extends Fault {
  declare readonly code: "cancelled";
  readonly reason: string;
  readonly status: CancellationStatus;
  /**
   * The part of the answer that readers of the stream had received when the cancel interrupted it. It is not
   * serialised with the error.
   */
  readonly partial: string;
  /** The output of a cancelled child for which this task was waiting. It is not serialised with the error. */
  readonly childOutput: JsonValue;

  constructor(
    reason: string,
    { status = "cancelled", partial = "", childOutput = null, ...options }: CancellationOptions = {},
  ) {
    super("cancelled", reason, { ...options, details: { reason, status } }, true);
    this.reason = reason;
    this.status = status;
    this.partial = partial;
    this.childOutput = childOutput;
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return this === CancellationError ? hasCode(value, "cancelled") : super[Symbol.hasInstance](value);
  }
}

export type CancelListener = (error: CancellationError) => void;

/**
 * The cooperative cancellation signal of one task. Deadlines belong to `RunMeta` and not to the token (trap R19).
 *
 * C1: `cancel` reaches every descendant and never a parent. The first reason wins; later calls change nothing.
 *
 * A child refers to its parent, but a parent refers to a child only while there is a listener at or below that
 * child, so that unused tokens cost no memory. No method is recursive, so that the tree may be deep.
 */
export class CancellationToken {
  readonly #parent: CancellationToken | undefined;
  /** Children that have listeners at or below them. */
  #linked: Set<CancellationToken> | undefined;
  #listeners: Set<CancelListener> | undefined;
  #error: CancellationError | undefined;
  #wait: Promise<CancellationError> | undefined;
  #endWait: (() => void) | undefined;

  /** Creates a token. Without a parent it is the root of a tree of tokens. */
  constructor(parent?: CancellationToken) {
    this.#parent = parent;
  }

  /** The error that `check` throws, or `undefined` if the token is not cancelled. */
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

  /**
   * Cancels this token and its descendants. Every listener is called even if one throws; `cancel` then throws the
   * first error.
   */
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

  /** Throws a `CancellationError` if this token or an ancestor is cancelled. */
  check(): void {
    const { error } = this;
    if (error !== undefined) throw error;
  }

  /**
   * Resolves with the error when the token is cancelled. Call `dispose` if the token is no longer needed and was not
   * cancelled.
   */
  wait(): Promise<CancellationError> {
    this.#wait ??= new Promise((resolve) => {
      this.#endWait = this.onCancel(resolve);
    });
    return this.#wait;
  }

  child(): CancellationToken {
    return new CancellationToken(this);
  }

  /**
   * Calls the listener once when the token is cancelled, or immediately if it is already cancelled. The returned
   * function removes the listener.
   */
  onCancel(listener: CancelListener): () => void {
    const { error } = this;
    if (error !== undefined) {
      listener(error);
      return ignore;
    }
    // The wrapper makes two listeners of a function that is added twice.
    const entry: CancelListener = (cancellation) => listener(cancellation);
    (this.#listeners ??= new Set()).add(entry);
    this.#link();
    return () => {
      if (this.#listeners?.delete(entry) === true) this.#unlink();
    };
  }

  /** Ends a pending `wait` without resolving it, so that a long-lived parent no longer refers to this token. */
  dispose(): void {
    this.#endWait?.();
    this.#endWait = undefined;
    if (!this.cancelled) this.#wait = undefined;
  }

  #tell(thrown: unknown[]): void {
    // A listener that another listener removes during this loop is not called.
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

  /** Removes the links from ancestors that no longer have a listener at or below this token. */
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
