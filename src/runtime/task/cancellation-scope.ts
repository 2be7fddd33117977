import { CancellationToken } from "../../kernel/index.ts";
import type { InFlightCall } from "./in-flight-calls.ts";

/** The task that a tree of scopes belongs to. */
export interface CancellationRoot {
  readonly token: CancellationToken;
  /** B5: throws if the deadline of the task has passed. */
  checkDeadline(): void;
  /** Whether the code of the task only replays its recorded steps and executes no others. Default: `false`. */
  readonly onlyReplays?: boolean;
}

/**
 * A part of a task's code that can be cancelled separately: the task's own code, a branch, or the body of a tool.
 *
 * States, and the moves between them:
 * - active.
 * - cancelled: its token or a token above it was cancelled. The code receives the error at its next step and may
 *   clean up.
 * - abandoned (`abandon`, of this scope or of one above): also cancelled, and no promise of a call of the code
 *   settles any more.
 *
 * A scope that an earlier owner abandoned, and every scope of a task that only replays, replays its recorded steps
 * and starts no other (`startsNoStep`).
 *
 * C2: a shielded scope, and every scope below it, is cancelled only with a scope above that is abandoned. The
 * cancel and the deadline of the task do not reach it.
 */
export class CancellationScope {
  readonly token: CancellationToken;
  readonly #root: CancellationRoot;
  readonly #parent: CancellationScope | undefined;
  /** The call whose body runs in this scope. */
  readonly #call: InFlightCall | undefined;
  #signal: AbortSignal | undefined;
  #attempt: AbortController | undefined;
  #isAbandoned = false;
  readonly #isShielded: boolean;
  /** The shielded scopes below this one. Created with the first one. */
  #shieldedBelow: Set<CancellationScope> | undefined;
  /**
   * Whether an earlier owner of the run had abandoned this scope or a scope above it. The replay executes such a
   * scope again.
   */
  readonly wasAbandoned: boolean;
  /** Whether the code of this scope only replays its recorded steps and starts no others. */
  readonly startsNoStep: boolean;
  /**
   * G4: whether the scope belongs to an open `ctx.attempt`, whose calls may start even while the engine ends the
   * execution.
   */
  readonly isLive: boolean;

  constructor(
    above: CancellationScope | CancellationRoot,
    call?: InFlightCall,
    wasAbandoned = false,
    isShielded = false,
    isLive = false,
  ) {
    const isNested = above instanceof CancellationScope;
    this.wasAbandoned = wasAbandoned || (isNested && above.wasAbandoned);
    this.startsNoStep = wasAbandoned || (isNested ? above.startsNoStep : above.onlyReplays === true);
    this.token = new CancellationToken(isShielded ? undefined : above.token);
    this.#root = isNested ? above.#root : above;
    this.#parent = isNested ? above : undefined;
    this.#call = call;
    this.#isShielded = isShielded || (isNested && above.#isShielded);
    this.isLive = isLive || (isNested && above.isLive);
  }

  /**
   * Creates the scope of the body of `ctx.attempt`. It has no call, because a wait inside the body does not make
   * the attempt idle. If the body runs a program, `call` is the call of the attempt.
   */
  static live(above: CancellationScope, call?: InFlightCall): CancellationScope {
    return new CancellationScope(above, call, false, false, true);
  }

  /** Creates a scope without a scope above it. Neither the cancel nor the deadline of the task reaches it. */
  static alone(root: CancellationRoot): CancellationScope {
    return new CancellationScope(root, undefined, false, true);
  }

  /** C2: whether neither the cancel nor the deadline of the task reaches this scope. */
  get isShielded(): boolean {
    return this.#isShielded;
  }

  /** C2: runs work in a scope inside this one that is protected from cancels. */
  async shield<Value>(work: (scope: CancellationScope) => Promise<Value>): Promise<Value> {
    const scope = new CancellationScope(this, undefined, false, true);
    this.#addShielded(scope);
    try {
      return await work(scope);
    } finally {
      this.#removeShielded(scope);
    }
  }

  #addShielded(scope: CancellationScope): void {
    (this.#shieldedBelow ??= new Set()).add(scope);
    if (this.#parent !== undefined) this.#parent.#addShielded(scope);
  }

  #removeShielded(scope: CancellationScope): void {
    this.#shieldedBelow?.delete(scope);
    if (this.#parent !== undefined) this.#parent.#removeShielded(scope);
  }

  get isAbandoned(): boolean {
    return this.#isAbandoned || (this.#parent?.isAbandoned ?? false);
  }

  /** Creates a scope inside this one that an earlier owner had abandoned. */
  abandonedBefore(): CancellationScope {
    return new CancellationScope(this, undefined, true);
  }

  /** An `AbortSignal` that is aborted with the token. Created when it is first used. */
  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      const controller = new AbortController();
      this.token.onCancel((error) => controller.abort(error));
      this.#signal = controller.signal;
    }
    return this.#signal;
  }

  /**
   * The signal of the model call for which the code of this scope waits. It is aborted with the token and by
   * `abortAttempt`. Attempts share it until it is aborted, because a scope has one call at a time.
   */
  get attemptSignal(): AbortSignal {
    if (this.#attempt === undefined) {
      this.#attempt = new AbortController();
      this.token.onCancel((error) => this.#attempt?.abort(error));
    } else if (this.#attempt.signal.aborted && this.token.error === undefined) {
      this.#attempt = new AbortController();
    }
    return this.#attempt.signal;
  }

  /** Aborts only the attempt of a model call, because it timed out. The next attempt gets another signal. */
  abortAttempt(error: Error): void {
    this.#attempt?.abort(error);
  }

  /** C2: throws if the scope is cancelled or the deadline of the task has passed. */
  check(): void {
    const { error } = this.token;
    if (error !== undefined) throw error;
    this.checkDeadline();
  }

  /**
   * B5: throws if the deadline of the task has passed, even if the timer that cancels the task at the deadline has
   * not fired yet.
   */
  checkDeadline(): void {
    if (!this.#isShielded) this.#root.checkDeadline();
  }

  abandon(reason: string): void {
    this.#isAbandoned = true;
    this.token.cancel(reason);
    for (const shielded of this.#shieldedBelow ?? []) shielded.token.cancel(reason);
  }

  /**
   * Counts parallel parts of code in this scope that wait (`1`) or continue (`-1`), for every call around it. A
   * call that only waits does not count as working.
   */
  addBlocked(by: 1 | -1): void {
    if (this.#call !== undefined) this.#call.blocked += by;
    this.#parent?.addBlocked(by);
  }
}
