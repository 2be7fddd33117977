import {
  assertJson,
  describeValue,
  Fault,
  type CancelSignal,
  type CancellationToken,
  type JsonValue,
  type StepContext,
} from "../../kernel/index.ts";
import { BodyContext, insideTask } from "../process/async-context.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { AbandonableCall, type NestedContext } from "../task/nested-scope.ts";
import type { InFlightCall } from "../task/in-flight-calls.ts";
import { CancellationScope } from "../task/cancellation-scope.ts";
import type { CallingScope } from "../tool/gate-context.ts";
import { checkStepOptions, type StepOptions } from "./context-options.ts";

interface RunningStepOptions {
  readonly idempotencyKey: string;
  /** The cancellation scope of the code around the step. */
  readonly around: CancellationScope;
  readonly call: InFlightCall;
  readonly inside: (cancelScope: CancellationScope) => NestedContext;
}

/** The context that the body of `ctx.step` receives. */
class StepBodyContext extends AbandonableCall implements StepContext {
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

  /** Token that cancels the body alone. */
  get token(): CancellationToken {
    return this.cancelScope.token;
  }

  protected override createContext(): NestedContext {
    return this.#inside(this.cancelScope);
  }
}

/** Runs `ctx.step`. The steps of its body are scoped under the step. */
export function runStep<Value extends JsonValue>(
  { steps, inside }: CallingScope,
  name: string,
  body: (step: StepContext) => Promise<Value>,
  options: StepOptions | undefined,
): Promise<Value> {
  const problem = stepProblem(name, body);
  if (problem !== undefined) return Promise.reject(problem);
  const input = options?.input ?? null;
  const step = steps.identify("step", name, input);
  return steps.run<Value>(step, async (open) => {
    checkStepOptions(options);
    assertJson(input, `the input of step ${name}`);
    const call = await open.begin();
    const running = new StepBodyContext({
      idempotencyKey: steps.idempotencyKey(step.address),
      around: open.cancelScope,
      call,
      inside: (cancelScope) => inside(step.address, cancelScope),
    });
    call.body = running;
    return runBody(open, name, running, body);
  });
}

/** What is wrong with the name and the body of a step. They are checked here, because not every caller is type-checked. */
function stepProblem(name: unknown, body: unknown): Fault | undefined {
  const use = "use ctx.step(name, async () => value)";
  if (typeof name !== "string" || name === "")
    return new Fault(
      "invalid_argument",
      `invalid name ${describeValue(name)} of ctx.step(): expected a text that is not empty; ${use}`,
    );
  if (typeof body === "function") return undefined;
  return new Fault(
    "invalid_argument",
    `invalid body of ctx.step(${JSON.stringify(name)}): expected a function, not ${describeValue(body)}; ${use}`,
  );
}

/** Runs the body of a step, and emits `step_end` with the time that it took. The event commits with the step's record. */
async function runBody<Value>(
  open: ActiveStep,
  name: string,
  running: StepBodyContext,
  body: (step: StepContext) => Promise<Value>,
): Promise<Value> {
  const from = open.runner.worker.clock.now();
  try {
    const inside = new BodyContext(open.runner.inside, running, () =>
      open.submissionsOf(running.idempotencyKey),
    );
    const work = insideTask(inside, () => body(running));
    const value = await running.unlessAbandoned(Promise.resolve(work), inside);
    for (const draft of running.takeEvents()) open.emit(draft);
    open.emit({ type: "step_end", data: { name, durationMs: open.durationSince(from) } });
    return value;
  } catch (error) {
    const durationMs = open.durationSince(from);
    open.emit({ type: "step_end", data: { name, durationMs, status: "error" } });
    throw error;
  }
}
