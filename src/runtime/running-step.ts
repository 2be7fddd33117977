import type { CancelSignal, StepContext } from "../kernel/index.ts";
import { ScopeInside, type InnerContext } from "./scope-inside.ts";

export interface RunningStepOptions {
  readonly idempotencyKey: string;
  readonly signal: CancelSignal;
  readonly inside: () => InnerContext;
}

/** What a step's body is given. */
export class RunningStep extends ScopeInside implements StepContext {
  readonly idempotencyKey: string;
  readonly signal: CancelSignal;

  readonly #inside: () => InnerContext;

  constructor({ idempotencyKey, signal, inside }: RunningStepOptions) {
    super();
    this.idempotencyKey = idempotencyKey;
    this.signal = signal;
    this.#inside = inside;
  }

  protected override make(): InnerContext {
    return this.#inside();
  }
}
