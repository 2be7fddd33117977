import { openStep, type ActiveStep } from "../task/active-step.ts";
import { Fault, type Branch, type StepAddress } from "../../kernel/index.ts";
import type { NestedContext } from "../task/nested-scope.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import { insideBranch } from "../process/async-context.ts";
import { CancellationScope } from "../task/cancellation-scope.ts";
import { isOutcome } from "../task/step-outcome.ts";
import { emittedAddress } from "../journal/wait-names.ts";

interface Branches {
  readonly branches: Readonly<Record<string, Branch<unknown>>>;
  readonly contextOf: (name: string, cancelScope: CancellationScope) => NestedContext;
  readonly stopOnFault: boolean;
}

/**
 * Runs branches concurrently and returns how each settled, in declaration order. With `stopOnFault` the first fault is
 * thrown, and the other branches are abandoned. W1: the values that these have taken return to their waits. C1: the
 * children that they have spawned are cancelled.
 */
export async function runBranches(
  steps: StepExecutor,
  address: StepAddress,
  { branches, contextOf, stopOnFault }: Branches,
): Promise<readonly PromiseSettledResult<unknown>[]> {
  const cancelScope = stopOnFault ? new CancellationScope(steps.cancelScope) : steps.cancelScope;
  // Emitted now, because otherwise these events would come after those of the branches.
  const events = steps.takeEvents();
  if (events.length > 0) openStep(steps.runner, emittedAddress(address), steps.cancelScope, events);
  const before = steps.runner.journal.passAbandonments(address);
  const settled: string[] = [];
  const running = Object.entries(branches).map(async ([name, branch]) => {
    const wasAbandoned = before !== undefined && !before.settled.includes(name);
    const scope = wasAbandoned ? cancelScope.abandonedBefore() : cancelScope;
    const ctx = contextOf(name, scope);
    try {
      return await insideBranch(steps.runner.inside, scope.token, () => branch(ctx));
    } finally {
      settled.push(name);
      for (const draft of ctx.takeEvents()) steps.emit(draft);
    }
  });
  if (!stopOnFault) return Promise.allSettled(running);
  try {
    await Promise.all(running);
  } catch (error) {
    cancelScope.abandon("another branch failed");
    // A cancelled task runs the branches again when it is resumed, so they keep their values.
    if (isOutcome(Fault.from(error))) steps.abandon({ step: address, settled });
    throw error;
  }
  return Promise.allSettled(running);
}

export interface RaceResult<Value> {
  /** Name of the branch that settled first. */
  readonly winner: string;
  readonly value: Value;
}

/** Runs branches concurrently until the first one settles, and abandons the others: their calls are cancelled and never settle. */
export async function raceBranches<Value>(
  step: ActiveStep,
  branches: Readonly<Record<string, Branch<Value>>>,
  contextOf: (name: string, cancelScope: CancellationScope) => NestedContext,
): Promise<RaceResult<Value>> {
  const { inside } = step.runner;
  if (Object.keys(branches).length === 0)
    throw new Fault("invalid_argument", "invalid branches of ctx.race(): expected at least one branch");
  const entrants = Object.entries(branches).map(([name, branch]) => {
    const cancelScope = new CancellationScope(step.cancelScope);
    const ctx = contextOf(name, cancelScope);
    const run = async (): Promise<RaceResult<Value>> => {
      try {
        return { winner: name, value: await insideBranch(inside, cancelScope.token, () => branch(ctx)) };
      } finally {
        step.firstBranch ??= name;
      }
    };
    return { name, cancelScope, ctx, result: run() };
  });
  try {
    const first = await Promise.race(entrants.map(({ result }) => result));
    const winner = entrants.find(({ name }) => name === first.winner);
    for (const draft of winner?.ctx.takeEvents() ?? []) step.emit(draft);
    return first;
  } finally {
    for (const { cancelScope } of entrants) cancelScope.abandon("another branch of the race was first");
  }
}
