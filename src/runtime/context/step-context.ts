import type { CancelSignal, StepContext } from "../../kernel/index.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { AbandonableCall, type NestedContext } from "../task/nested-scope.ts";
import type { InFlightCall } from "../task/in-flight-calls.ts";
import { CancellationScope } from "../task/cancellation-scope.ts";

export interface RunningStepOptions {
  readonly idempotencyKey: string;
  /** The cancellation scope of the code around the step. */
  readonly around: CancellationScope;
  readonly call: InFlightCall;
  readonly inside: (cancelScope: CancellationScope) => NestedContext;
}

/** The context that the body of `ctx.step` receives. */
export class StepBodyContext extends AbandonableCall implements StepContext {
  readonly idempotencyKey: string;
  readonly #around: CancellationScope;
  readonly #call: InFlightCall;
  readonly #inside: (cancelScope: CancellationScope) => NestedContext;
  #cancelScope: CancellationScope | undefined;

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

  override get cancelScope(): CancellationScope {
    return (this.#cancelScope ??= new CancellationScope(this.#around, this.#call));
  }

  protected override createContext(): NestedContext {
    return this.#inside(this.cancelScope);
  }
}

/** Runs the body of a step, and emits `step_end` with the time that it took. The event commits with the step's record. */
export async function runBody<Value>(
  open: ActiveStep,
  name: string,
  running: StepBodyContext,
  body: (step: StepContext) => Promise<Value>,
): Promise<Value> {
  const from = open.runner.worker.clock.now();
  try {
    const value = await running.unlessAbandoned(Promise.resolve(body(running)));
    for (const draft of running.takeEvents()) open.emit(draft);
    open.emit({ type: "step_end", data: { name, durationMs: open.durationSince(from) } });
    return value;
  } catch (error) {
    const durationMs = open.durationSince(from);
    open.emit({ type: "step_end", data: { name, durationMs, status: "error" } });
    throw error;
  }
}
