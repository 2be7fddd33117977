import type { Fault } from "../../kernel/index.ts";

/**
 * The body of a call. If the call is abandoned, it fails with the fault, and later results of the body are ignored.
 */
export interface CallBody {
  abandon(fault: Fault): void;
}

/**
 * A call that a step has started and that has not settled. While its body waits for a step, the call does not count
 * as working.
 */
export interface InFlightCall {
  blocked: number;
  /** Whether the body only waits for requests of a program. Each of these requests is a separate call. */
  isResting: boolean;
  /** Index in the list of calls in flight, so that removing the call needs no search. */
  place: number;
  /** The body, once it has started. */
  body: CallBody | undefined;
  /**
   * H2: whether the call lets the task lose its seat, because it is the attempt of a program. The calls of the
   * program itself keep the seat.
   */
  yields: boolean;
  /** The scope of the code that waits for the call. If it is abandoned, no code waits for the call any more. */
  readonly scope: { readonly isAbandoned: boolean };
}

/** The calls of a task that are in flight, in no particular order. Beginning and ending a call costs O(1). */
export class InFlightCalls {
  readonly #open: InFlightCall[] = [];

  get count(): number {
    return this.#open.length;
  }

  /** Whether a call is in flight for which code waits and whose body does not wait for a step. */
  get isWorking(): boolean {
    for (const { blocked, scope } of this.#open) if (blocked === 0 && !scope.isAbandoned) return true;
    return false;
  }

  /** Whether a call is in flight that needs a slot: one that works, and does not only wait for requests. */
  get needsSlot(): boolean {
    for (const { blocked, isResting, scope } of this.#open)
      if (blocked === 0 && !isResting && !scope.isAbandoned) return true;
    return false;
  }

  /**
   * H2: whether a call is in flight that keeps the task's seat: one that works and is not the attempt of a program.
   */
  get keepsSeat(): boolean {
    for (const { blocked, scope, yields } of this.#open)
      if (blocked === 0 && !yields && !scope.isAbandoned) return true;
    return false;
  }

  begin(scope: InFlightCall["scope"]): InFlightCall {
    const call = {
      blocked: 0,
      isResting: false,
      place: this.#open.length,
      body: undefined,
      yields: false,
      scope,
    };
    this.#open.push(call);
    return call;
  }

  /** Ends a call. Returns whether it was in flight. */
  end(call: InFlightCall): boolean {
    if (this.#open[call.place] !== call) return false;
    const last = this.#open.pop();
    if (last !== undefined && last !== call) {
      this.#open[call.place] = last;
      last.place = call.place;
    }
    return true;
  }

  /** Abandons all calls. Returns whether there were any. */
  abandonAll(fault: Fault): boolean {
    let found = false;
    for (const call of this.#open.slice()) {
      const { body } = call;
      if (body === undefined) continue;
      call.body = undefined;
      found = true;
      body.abandon(fault);
    }
    return found;
  }
}
