import type { Fault } from "../../kernel/index.ts";

/** The body of a call. If it is abandoned, the call fails with the fault, and later results of the body are ignored. */
export interface CallBody {
  abandon(fault: Fault): void;
}

/**
 * A call that a step has started and that has not settled. While its body waits for a step, the call is not working.
 */
export interface InFlightCall {
  blocked: number;
  /** The body, once it has started. */
  body: CallBody | undefined;
}

/** The calls of a task that are in flight, usually few. */
export class InFlightCalls {
  readonly #open: InFlightCall[] = [];

  get count(): number {
    return this.#open.length;
  }

  /** Whether a call is in flight whose body does not wait for a step. */
  get isWorking(): boolean {
    for (const { blocked } of this.#open) if (blocked === 0) return true;
    return false;
  }

  begin(): InFlightCall {
    const call = { blocked: 0, body: undefined };
    this.#open.push(call);
    return call;
  }

  /** Ends a call. Returns whether it was in flight. */
  end(call: InFlightCall): boolean {
    const index = this.#open.indexOf(call);
    if (index < 0) return false;
    if (index === this.#open.length - 1) this.#open.pop();
    else this.#open.splice(index, 1);
    return true;
  }

  /** Abandons all calls. Returns whether there was one. */
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
