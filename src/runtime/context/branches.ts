import { openStep, type ActiveStep } from "../task/active-step.ts";
import type { Branch, StepAddress } from "../../kernel/index.ts";
import type { NestedContext } from "../task/nested-scope.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import { CancellationScope } from "../task/cancellation-scope.ts";
import { insideTask, ScopedContext } from "../process/async-context.ts";
import { emittedAddress } from "../journal/wait-names.ts";

interface Branches {
  readonly branches: Readonly<Record<string, Branch<unknown>>>;
  /** The context of each branch, in declaration order. */
  readonly contexts: readonly NestedContext[];
  /** The cancellation scope of all branches. */
  readonly cancelScope: CancellationScope;
  readonly stopOnFault: boolean;
}

/**
 * Runs branches concurrently and returns how each settled. With `stopOnFault` the first fault is thrown, and the other
 * branches are abandoned.
 */
export async function runBranches(
  steps: StepExecutor,
  address: StepAddress,
  { branches, contexts, cancelScope, stopOnFault }: Branches,
): Promise<readonly PromiseSettledResult<unknown>[]> {
  // Emitted now, because otherwise these events would come after those of the branches.
  const told = steps.takeEvents();
  if (told.length > 0) openStep(steps.runner, emittedAddress(address), steps.cancelScope, told);
  const running = Object.values(branches).map(async (branch, index) => {
    const ctx = contexts[index] as NestedContext;
    const { inside } = steps.runner;
    try {
      // The branches can be cancelled alone if a fault stops them.
      const scoped = stopOnFault ? new ScopedContext(inside, cancelScope) : undefined;
      return await (scoped === undefined ? branch(ctx) : insideTask(scoped, () => branch(ctx)));
    } finally {
      for (const draft of ctx.takeEvents()) steps.emit(draft);
    }
  });
  if (stopOnFault) await unlessFault(cancelScope, running);
  return Promise.allSettled(running);
}

async function unlessFault(
  cancelScope: CancellationScope,
  running: readonly Promise<unknown>[],
): Promise<void> {
  try {
    await Promise.all(running);
  } catch (error) {
    cancelScope.abandon("another branch failed");
    throw error;
  }
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
  const entrants = Object.entries(branches).map(([name, branch]) => {
    const cancelScope = new CancellationScope(step.cancelScope);
    const ctx = contextOf(name, cancelScope);
    const inside = new ScopedContext(step.runner.inside, cancelScope);
    const run = async (): Promise<RaceResult<Value>> => ({
      winner: name,
      value: await insideTask(inside, () => branch(ctx)),
    });
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
