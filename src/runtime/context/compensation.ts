import {
  CancellationError,
  describeValue,
  Fault,
  JsonDigest,
  outcomeStatus,
  sealedOutcome,
  stepAt,
  type Branch,
  type CompensationContext,
  type CompensationOptions,
  type EventDraft,
  type Failure,
  type JsonObject,
  type JsonValue,
  type RunContext,
  type StepAddress,
  type StepScope,
  type TaskOutcome,
} from "../../kernel/index.ts";
import { insideBranch } from "../process/async-context.ts";
import { formerlyNamed, type StepIdentity } from "../journal/step-identity.ts";
import { hasCompensated } from "../journal/task-state.ts";
import { compensationsIn, journalScope } from "../journal/wait-names.ts";
import type { CancellationScope } from "../task/cancellation-scope.ts";
import type { NestedContext } from "../task/nested-scope.ts";
import type { Body } from "../task/step-body.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import { isOutcome } from "../journal/recorded-faults.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import { checkCompensationOptions } from "./context-options.ts";

/** Default time limit of a compensation and of `ctx.uncancellable`, in milliseconds. */
const shieldedMs = 600_000;

/** The record of the beginning of a task's compensations. */
interface Begun {
  /** How the task ends. */
  readonly outcome: TaskOutcome;
  /** The registered compensations, in the order in which they run. */
  readonly undos: readonly { readonly address: StepAddress; readonly name: string }[];
}

/** A compensation that did not succeed. */
interface FailedUndo {
  readonly name: string;
  readonly failure: Failure;
}

/** Creates a run context in a scope of the task. */
type ContextIn = (scope: StepScope, cancelScope: CancellationScope) => RunContext;

/**
 * C2: runs the branch of `ctx.uncancellable`. After the compensations of the task have begun, the code only
 * replays.
 */
export async function runShielded<Value extends JsonValue>(
  steps: StepExecutor,
  branch: Branch<Value>,
  timeoutMs = shieldedMs,
  contextOf: (cancelScope: CancellationScope) => NestedContext,
): Promise<Value> {
  const { runner, cancelScope: around } = steps;
  const work = async (cancelScope: CancellationScope): Promise<Value> => {
    const ctx = contextOf(cancelScope);
    try {
      return await insideBranch(runner.inside, cancelScope.token, () => ctx.timeout(timeoutMs, branch));
    } finally {
      for (const draft of ctx.takeEvents()) steps.emit(draft);
    }
  };
  return hasCompensated(runner.task) ? work(around) : runner.shielded(() => around.shield(work));
}

/**
 * Registers a compensation. The registration is recorded, so that a replay knows the compensations inside calls
 * that it does not execute again.
 */
export async function registerUndo(
  steps: StepExecutor,
  isBody: boolean,
  name: string,
  undo: (step: CompensationContext) => Promise<unknown>,
  options: CompensationOptions = {},
): Promise<void> {
  const { runner } = steps;
  const problem = undoProblem(runner, isBody, name, undo);
  if (problem !== undefined) throw problem;
  checkCompensationOptions(options);
  const { timeoutMs = shieldedMs, formerly, ...own } = options;
  const step = formerlyNamed(steps.identify("compensate", name, null), formerly);
  await steps.note(step, () => {
    (runner.undos ??= new Map()).set(step.address, { undo, timeoutMs, options: own });
  });
}

function undoProblem(
  { agent }: TaskRunner,
  isBody: boolean,
  name: unknown,
  undo: unknown,
): Fault | undefined {
  const use = "use ctx.compensate(name, async () => { ... })";
  if (agent.runKind !== "workflow")
    return refuse(
      `ctx.compensate() was called by agent ${agent.id}: only a workflow has compensations; use workflow() of reeve/workflow`,
    );
  if (typeof name !== "string" || name === "")
    return refuse(
      `invalid name ${describeValue(name)} of ctx.compensate(): expected a text that is not empty; ${use}`,
    );
  const shown = JSON.stringify(name);
  if (typeof undo !== "function")
    return refuse(
      `invalid function of ctx.compensate(${shown}): expected a function, not ${describeValue(undo)}; ${use}`,
    );
  if (isBody)
    return refuse(
      `ctx.compensate(${shown}) was called in the body of a step, which a replay does not execute; call it after the step`,
    );
  return undefined;
}

function refuse(problem: string): Fault {
  return new Fault("invalid_argument", problem);
}

/**
 * Maximum number of turns of the event loop in which code that only replays must have registered its compensations
 * again.
 */
const maxTurns = 10_000;

/** The branches of a step that has one record for all of them. */
export interface StepBranches {
  readonly branches: Readonly<Record<string, Branch<unknown>>>;
  readonly contextOf: (name: string, cancelScope: CancellationScope) => RunContext;
}

/**
 * Runs a step that executes branches. A replay returns the record of the step without executing the branches. If
 * the branches have registered compensations, they are replayed first as far as their records go, so that this
 * process has the functions of the compensations.
 */
export function runBranchStep<Value, Given = Value>(
  steps: StepExecutor,
  step: StepIdentity,
  branched: () => StepBranches,
  body: Body<Value>,
  as?: (value: Value) => Given,
): Promise<Given> {
  const { journal } = steps.runner;
  if (!journal.isRecorded(step) || registeredIn(steps.runner, step.address).length === 0)
    return steps.run<Value, Given>(step, body, undefined, as);
  return steps.exclusive(`${step.kind} ${step.name}`, async () => {
    // The run stays in memory until the compensation ends, although its other branches may only wait. A cancel does
    // not end it.
    const { activity, undoScope } = steps.runner;
    await activity.pauseFor(undoScope, registerAgain(steps, step.address, branched()));
    return steps.runInScope<Value, StepIdentity, Given>(step, body, undefined, as);
  });
}

async function registerAgain(
  { runner, cancelScope }: StepExecutor,
  step: StepAddress,
  { branches, contextOf }: StepBranches,
): Promise<void> {
  const missing = new Set(registeredIn(runner, step));
  const scope = cancelScope.abandonedBefore();
  for (const [name, branch] of Object.entries(branches))
    void insideBranch(runner.inside, scope.token, () => branch(contextOf(name, scope))).catch(
      () => undefined,
    );
  for (let turn = 0; missing.size > 0 && turn < maxTurns; turn++) {
    await new Promise<void>((resolve) => runner.worker.eventLoop.nextTurn(resolve));
    for (const address of missing) if (runner.undos?.has(address) === true) missing.delete(address);
  }
}

/** Returns the addresses of the compensations that code inside this step has registered. */
function registeredIn({ task }: TaskRunner, step: StepAddress): readonly StepAddress[] {
  return task.compensations?.filter((address) => address.startsWith(`${step}/`)) ?? none;
}

const none: readonly never[] = [];

/**
 * Undoes the work of a task that ends with `outcome`, or continues to undo it. Returns the final outcome, with the
 * events that belong to it, or `undefined` if there is nothing to undo.
 *
 * The beginning is one record: the outcome, and the compensations in their order. Neither changes later, whatever
 * the code does on a replay. A crash repeats at most the attempt that was in flight (J6).
 */
export async function undoWork(
  runner: TaskRunner,
  outcome: TaskOutcome | undefined,
  contextIn: ContextIn,
): Promise<{ readonly outcome: TaskOutcome; readonly events: readonly EventDraft[] } | undefined> {
  const scope = compensationsIn(journalScope(runner.task.journal));
  if (!runner.task.steps.has(scope) && (outcome === undefined || (runner.undos?.size ?? 0) === 0))
    return undefined;
  return runner.shielded(async () => {
    const begun = await begin(runner, scope, outcome);
    const failed: FailedUndo[] = [];
    for (const [index, { address, name }] of begun.undos.entries()) {
      const ctx = contextIn(stepAt(scope, index), runner.undoScope);
      const failure = await undoOne(runner, ctx, name, address, begun.outcome);
      if (failure !== undefined) failed.push({ name, failure });
    }
    const end: EventDraft = { type: "compensation_end", data: { failed } };
    return { outcome: withFailures(begun.outcome, failed), events: [end] };
  });
}

/** Records that the compensations begin. If an earlier owner has recorded it, returns that record. */
async function begin(
  runner: TaskRunner,
  address: StepAddress,
  outcome: TaskOutcome | undefined,
): Promise<Begun> {
  const { task, agent, host, taskId, journal } = runner;
  const known = task.steps.get(address)?.outcome;
  if (known?.kind === "ok") return known.value as unknown as Begun;
  if (outcome === undefined) throw new Fault("internal", `step ${address} has no outcome`);
  // A paused run does not begin: it can be resumed first.
  const seated = runner.activity.whenSeated(runner.undoScope);
  if (seated !== undefined) await seated;
  const undos = (task.compensations ?? []).toReversed().flatMap((registered) => {
    const name = task.steps.get(registered)?.name;
    return name === undefined ? [] : [{ address: registered, name }];
  });
  const begun: Begun = { outcome, undos };
  const { status, failure } = causeOf(outcome);
  const start: EventDraft = {
    type: "compensation_start",
    data: { names: undos.map(({ name }) => name), status, failure },
  };
  const step = { address, kind: "value", name: "compensations", digest: JsonDigest.ofNull } as const;
  journal.record(step, sealedOutcome(begun as unknown as JsonValue), [start]);
  const { compensationBudget } = agent;
  if (compensationBudget !== undefined)
    host.ledger.apply(taskId, { type: "topUp", taskId, add: compensationBudget });
  return begun;
}

async function undoOne(
  { undos }: TaskRunner,
  ctx: RunContext,
  name: string,
  address: StepAddress,
  outcome: TaskOutcome,
): Promise<Failure | undefined> {
  const registered = undos?.get(address);
  const { status, failure } = causeOf(outcome);
  try {
    if (registered === undefined)
      throw new Fault(
        "journal_mismatch",
        `compensation ${name} was registered as step ${address}, and the present code does not register it; run the code that started the run`,
        { details: { name, address } },
      );
    const { undo, timeoutMs, options } = registered;
    await ctx.timeout(timeoutMs, (branch) =>
      branch.step(
        name,
        async ({ idempotencyKey, attempt, signal, ctx: inside }) => {
          await undo({ idempotencyKey, attempt, signal, ctx: inside, status, reason: failure.message });
          return null;
        },
        { retry: {}, ...options },
      ),
    );
    return undefined;
  } catch (error) {
    const fault = Fault.from(error);
    if (registered !== undefined && !isOutcome(fault)) throw error;
    return fault.toJSON();
  }
}

function causeOf(outcome: TaskOutcome): Pick<CompensationContext, "status"> & { readonly failure: Failure } {
  const status = outcomeStatus(outcome);
  const failure = outcome.failure ?? new CancellationError("cancelled").toJSON();
  return { status: status === "deadline_exceeded" || status === "cancelled" ? status : "failed", failure };
}

/** Returns the outcome with an error that lists the compensations which failed. */
function withFailures(outcome: TaskOutcome, failed: readonly FailedUndo[]): TaskOutcome {
  const { failure } = outcome;
  if (failed.length === 0 || failure === null) return outcome;
  const compensations = failed.map(({ name, failure: { code, message } }): JsonObject => ({
    name,
    code,
    message,
  }));
  return { ...outcome, failure: { ...failure, details: { ...failure.details, compensations } } };
}
