import type { Fault } from "../../kernel/index.ts";

/** What a call does. Left, the call ends by the fault, whatever it does; what it comes to later is nobody's. */
export interface CallBody {
  abandon(fault: Fault): void;
}

/** A call that a step has begun and not settled. While its own body waits for a step, it is not at work. */
export interface InFlightCall {
  blocked: number;
  /** Once it is begun. */
  body: CallBody | undefined;
}

/** The calls a task is in. Few at a time. */
export class InFlightCalls {
  readonly #open: InFlightCall[] = [];

  get count(): number {
    return this.#open.length;
  }

  /** One of them is not itself waiting for a step of its body. */
  get isWorking(): boolean {
    for (const { blocked } of this.#open) if (blocked === 0) return true;
    return false;
  }

  begin(): InFlightCall {
    const call = { blocked: 0, body: undefined };
    this.#open.push(call);
    return call;
  }

  /** Whether it was open. */
  end(call: InFlightCall): boolean {
    const index = this.#open.indexOf(call);
    if (index < 0) return false;
    if (index === this.#open.length - 1) this.#open.pop();
    else this.#open.splice(index, 1);
    return true;
  }

  /** Whether there was one to leave. */
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
