import type { Fault } from "../../kernel/index.ts";
import type { CallBody } from "./in-flight-calls.ts";
import { LazyScope } from "./lazy-scope.ts";
import type { CancellationScope } from "./cancellation-scope.ts";

/** The body of a tool or a step at work, and the scope inside it. */
export abstract class AbandonableCall extends LazyScope implements CallBody {
  #fail: ((fault: Fault) => void) | undefined;

  /** Of the body, which may be told to stop by itself. */
  abstract get cancelScope(): CancellationScope;

  /** What the body comes to, unless it is left before. */
  unlessAbandoned<Value>(work: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      work.then(resolve, reject);
    });
  }

  /** The body is told to stop, if it was not, and never answered again. */
  abandon(fault: Fault): void {
    this.#fail?.(fault);
    this.cancelScope.abandon(fault.message);
  }
}
