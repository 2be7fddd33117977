import {
  assertJson,
  describeValue,
  Fault,
  readProperty,
  type CancelSignal,
  type CancellationToken,
  type JsonValue,
  type StepContext,
  type StepOptions,
  stepRetry,
} from "../../kernel/index.ts";
import { formerlyNamed } from "../journal/step-identity.ts";
import { BodyContext, insideTask } from "../process/async-context.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { AbandonableCall, type NestedContext } from "../task/nested-scope.ts";
import type { InFlightCall } from "../task/in-flight-calls.ts";
import { CancellationScope } from "../task/cancellation-scope.ts";
import type { CallingScope } from "../tool/gate-context.ts";
import { CallTimeout } from "../process/call-timeouts.ts";
import { readStepOptions } from "./context-options.ts";
import { StepAttempts, takeAttempts, type Attempt } from "./step-attempts.ts";

interface RunningStepOptions {
  readonly idempotencyKey: string;
  readonly attempt: number;
  /** The cancellation scope of the code around the step. */
  readonly around: CancellationScope;
  readonly call: InFlightCall;
  readonly inside: (cancelScope: CancellationScope) => NestedContext;
  /** Whether the body may be abandoned without the code around it, so that it needs its own signal. */
  readonly isLimited: boolean;
}

/** The context that the body of `ctx.step` receives. */
class StepBodyContext extends AbandonableCall implements StepContext {
  readonly idempotencyKey: string;
  readonly attempt: number;
  readonly #around: CancellationScope;
  readonly #call: InFlightCall;
  readonly #inside: (cancelScope: CancellationScope) => NestedContext;
  readonly #isLimited: boolean;
  #cancelScope: CancellationScope | undefined;

  constructor({ idempotencyKey, attempt, around, call, inside, isLimited }: RunningStepOptions) {
    super();
    this.idempotencyKey = idempotencyKey;
    this.attempt = attempt;
    this.#around = around;
    this.#call = call;
    this.#inside = inside;
    this.#isLimited = isLimited;
  }

  get signal(): CancelSignal {
    return this.#isLimited ? this.cancelScope.signal : this.#around.signal;
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

/** Runs `ctx.step`. The steps of its body are scoped under the step, or under its attempt if it may have several. */
export function runStep<Value extends JsonValue>(
  from: CallingScope,
  name: string,
  body: (step: StepContext) => Promise<Value>,
  options: StepOptions | undefined,
): Promise<Value> {
  const problem = stepProblem(name, body);
  if (problem !== undefined) return Promise.reject(problem);
  const { steps } = from;
  const input = options?.input ?? null;
  const step = formerlyNamed(steps.identify("step", name, input), options?.formerly);
  return steps.run<Value>(step, (open) => {
    const retry = readStepOptions(name, options);
    assertJson(input, `the input of step ${name}`);
    const failed = takeAttempts(steps, step.address);
    // The settings may have changed since an attempt was recorded.
    const limited =
      retry ?? (failed.length === 0 ? undefined : stepRetry({ maxAttempts: 1 }, `step ${name}`));
    return runAttempts(from, open, name, new StepAttempts(steps, open, name, limited, failed), body, options);
  });
}

/** Runs the body until an attempt succeeds, or until no further attempt is allowed. */
async function runAttempts<Value>(
  { steps, inside }: CallingScope,
  open: ActiveStep,
  name: string,
  attempts: StepAttempts,
  body: (step: StepContext) => Promise<Value>,
  options: StepOptions | undefined,
): Promise<Value> {
  for (;;) {
    const rest = attempts.untilNext();
    if (rest !== undefined) await rest;
    const attempt = attempts.next();
    let timer: CallTimeout | undefined;
    try {
      const call = await open.begin();
      const timeoutMs = options?.timeoutMs;
      const running = new StepBodyContext({
        idempotencyKey: options?.idempotencyKey ?? steps.idempotencyKey(open.address),
        attempt: attempt.number,
        around: open.cancelScope,
        call,
        inside: (cancelScope) => inside(attempts.scopeOf(attempt), cancelScope),
        isLimited: timeoutMs !== undefined,
      });
      call.body = running;
      if (timeoutMs !== undefined) timer = limitAttempt(open, name, attempt, running, timeoutMs);
      return await runBody(open, name, running, body);
    } catch (error) {
      attempts.fail(attempt, error);
    } finally {
      if (timer !== undefined) open.runner.worker.callTimeouts.remove(timer);
    }
  }
}

/** Abandons the body after the timeout. */
function limitAttempt(
  open: ActiveStep,
  name: string,
  attempt: Attempt,
  running: StepBodyContext,
  timeoutMs: number,
): CallTimeout {
  const { clock, callTimeouts } = open.runner.worker;
  open.nested = running;
  const timer = new CallTimeout(clock.now() + timeoutMs, () => {
    attempt.isAbandoned = true;
    running.abandon(new Fault("step_timeout", `step ${name} took longer than ${timeoutMs} ms`));
  });
  callTimeouts.add(timer);
  return timer;
}

/**
 * Returns what is wrong with the name and the body of a step. The check is at run time, because not every caller is
 * type-checked.
 */
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

/** Whether the error, or one of its causes, says that a signal has aborted a call. */
function isAbort(error: unknown): boolean {
  let at: unknown = error;
  for (let depth = 0; depth < maxCauses && at !== undefined; depth++) {
    if (readProperty(at, "name") === "AbortError") return true;
    at = readProperty(at, "cause");
  }
  return false;
}

/** Maximum number of levels of `cause` that are searched for an aborted call. */
const maxCauses = 8;

/**
 * Runs the body of a step, and emits `step_end` with the time that it took. The event is part of the commit that
 * records the step.
 */
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
    if (typeof value === "function")
      throw new Fault(
        "not_json",
        `the value of step ${name} is a function, which JSON cannot hold; call it in the step, and return its result`,
      );
    for (const draft of running.takeEvents()) open.emit(draft);
    open.emit({ type: "step_end", data: { name, durationMs: open.durationSince(from) } });
    return value;
  } catch (error) {
    const durationMs = open.durationSince(from);
    open.emit({ type: "step_end", data: { name, durationMs, status: "error" } });
    // C2: a request that the cancel has aborted fails with an error of its own, which is no outcome of the step.
    throw (isAbort(error) ? open.cancelScope.token.error : undefined) ?? error;
  }
}
