import { CancellationToken } from "../../kernel/index.ts";
import type { InFlightCall } from "./in-flight-calls.ts";

/**
 * A line of a task's code that can be stopped by itself: the task's own, a branch of a race, the body of a tool. Given up, it is never
 * answered again, and what it has open is told to stop.
 */
export class CancellationScope {
  readonly token: CancellationToken;
  readonly #parent: CancellationScope | undefined;
  /** The call whose body this is. */
  readonly #call: InFlightCall | undefined;
  #signal: AbortSignal | undefined;
  #givenUp = false;

  /** Below another, or below the stop button of a task. */
  constructor(above: CancellationScope | CancellationToken, call?: InFlightCall) {
    const parent = above instanceof CancellationScope ? above : undefined;
    this.token = new CancellationToken(above instanceof CancellationScope ? above.token : above);
    this.#parent = parent;
    this.#call = call;
  }

  get isAbandoned(): boolean {
    return this.#givenUp || (this.#parent?.isAbandoned ?? false);
  }

  /** A platform signal that follows the token, made when someone first asks. */
  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      const controller = new AbortController();
      this.token.onCancel((error) => controller.abort(error));
      this.#signal = controller.signal;
    }
    return this.#signal;
  }

  abandon(reason: string): void {
    this.#givenUp = true;
    this.token.cancel(reason);
  }

  /** The calls around it stand still, or go on. */
  addBlocked(by: 1 | -1): void {
    if (this.#call !== undefined) this.#call.blocked += by;
    this.#parent?.addBlocked(by);
  }
}
