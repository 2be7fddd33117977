import type { CancelSignal, StepContext } from "../../kernel/index.ts";
import { CallInside } from "../task/call-scope.ts";
import type { OpenCall } from "../task/in-flight-calls.ts";
import type { InnerContext } from "../task/lazy-scope.ts";
import { Strand } from "../task/cancellation-scope.ts";

export interface RunningStepOptions {
  readonly idempotencyKey: string;
  /** That of the code around it. */
  readonly around: Strand;
  readonly call: OpenCall;
  readonly inside: (strand: Strand) => InnerContext;
}

/** What a step's body is given. */
export class RunningStep extends CallInside implements StepContext {
  readonly idempotencyKey: string;
  readonly #around: Strand;
  readonly #call: OpenCall;
  readonly #inside: (strand: Strand) => InnerContext;
  #strand: Strand | undefined;

  constructor({ idempotencyKey, around, call, inside }: RunningStepOptions) {
    super();
    this.idempotencyKey = idempotencyKey;
    this.#around = around;
    this.#call = call;
    this.#inside = inside;
  }

  get signal(): CancelSignal {
    return this.#around.signal;
  }

  override get strand(): Strand {
    return (this.#strand ??= new Strand(this.#around, this.#call));
  }

  protected override make(): InnerContext {
    return this.#inside(this.strand);
  }
}
