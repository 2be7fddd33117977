import type { EventDraft, Fault, RunContext } from "../../kernel/index.ts";
import type { BodyContext } from "../process/async-context.ts";
import type { CancellationScope } from "./cancellation-scope.ts";
import type { CallBody } from "./in-flight-calls.ts";

/** A context inside a step. The step takes the events of this context and emits them. */
export type NestedContext = RunContext & { takeEvents(): readonly EventDraft[] };

const noEvents: readonly EventDraft[] = [];

/** The scope inside a step. F1: its context is created when it is first used, because most bodies take no steps. */
export abstract class NestedScope {
  #ctx: NestedContext | undefined;

  protected abstract createContext(): NestedContext;

  /** Whether the step ended before its body did. */
  get isAbandoned(): boolean {
    return false;
  }

  get ctx(): RunContext {
    this.#ctx ??= this.createContext();
    return this.#ctx;
  }

  /** Removes and returns the events that the body has emitted since its last step. */
  takeEvents(): readonly EventDraft[] {
    return this.#ctx?.takeEvents() ?? noEvents;
  }
}

/** The body of a tool or of `ctx.step` that is executing, and the scope inside it. */
export abstract class AbandonableCall extends NestedScope implements CallBody {
  #fail: ((fault: Fault) => void) | undefined;
  #isAbandoned = false;

  override get isAbandoned(): boolean {
    return this.#isAbandoned;
  }

  /** Scope of the body, which can be cancelled without cancelling the code around it. */
  abstract get cancelScope(): CancellationScope;

  /**
   * Returns the result of the body, unless `abandon` is called first. Ends the async context of the body when it
   * settles.
   */
  unlessAbandoned<Value>(work: Promise<Value>, inside?: BodyContext): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      work.then(
        (value) => {
          inside?.end();
          return resolve(value);
        },
        (error: unknown) => {
          inside?.end();
          reject(error);
        },
      );
    });
  }

  /** Fails the call with `fault` and cancels the body. No call of the body settles afterwards. */
  abandon(fault: Fault): void {
    this.#isAbandoned = true;
    this.#fail?.(fault);
    this.cancelScope.abandon(fault.message);
  }
}
