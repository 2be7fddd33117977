import { openStep, type ActiveStep } from "../task/active-step.ts";
import {
  Fault,
  reviveFault,
  type Branch,
  type Failure,
  type JsonValue,
  type SettledItem,
  type StepAddress,
} from "../../kernel/index.ts";
import type { NestedContext } from "../task/nested-scope.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import { pendingForever } from "../process/pending-forever.ts";
import { insideBranch } from "../process/async-context.ts";
import { CancellationScope } from "../task/cancellation-scope.ts";
import { isOutcome } from "../journal/recorded-faults.ts";
import { runBranchStep, type StepBranches } from "./compensation.ts";
import { emittedAddress } from "../journal/wait-names.ts";

interface Branches {
  readonly branches: Readonly<Record<string, Branch<unknown>>>;
  readonly contextOf: (name: string, cancelScope: CancellationScope) => NestedContext;
  readonly stopOnFault: boolean;
}

/**
 * Runs branches concurrently and returns how each settled, in declaration order. With `stopOnFault` it throws the
 * first fault and abandons the other branches. W1: the values that an abandoned branch has taken return to their
 * waits. C1: the children that it has spawned are cancelled.
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

/**
 * Runs branches concurrently until the first one settles, or with `isAny` until the first one succeeds, and abandons the
 * others: their calls are cancelled and never settle.
 */
export async function raceBranches<Value>(
  step: ActiveStep,
  branches: Readonly<Record<string, Branch<Value>>>,
  contextOf: (name: string, cancelScope: CancellationScope) => NestedContext,
  isAny = false,
): Promise<RaceResult<Value>> {
  const { inside } = step.runner;
  if (Object.keys(branches).length === 0)
    throw new Fault(
      "invalid_argument",
      `invalid branches of ctx.${isAny ? "any" : "race"}(): expected at least one branch`,
    );
  const entrants = Object.entries(branches).map(([name, branch]) => {
    const cancelScope = new CancellationScope(step.cancelScope);
    const ctx = contextOf(name, cancelScope);
    const run = async (): Promise<RaceResult<Value>> => {
      try {
        return { winner: name, value: await insideBranch(inside, cancelScope.token, () => branch(ctx)) };
      } finally {
        if (!isAny) step.firstBranch ??= name;
      }
    };
    return { name, cancelScope, ctx, result: run() };
  });
  try {
    const results = entrants.map(({ result }) => result);
    const first = await (isAny ? firstSuccess(results, Object.keys(branches)) : Promise.race(results));
    if (isAny) step.firstBranch = first.winner;
    const winner = entrants.find(({ name }) => name === first.winner);
    for (const draft of winner?.ctx.takeEvents() ?? []) step.emit(draft);
    return first;
  } finally {
    for (const { cancelScope } of entrants) cancelScope.abandon("another branch of the race was first");
  }
}

/**
 * Returns the first result. If all branches fail, throws the fault of the first one in declaration order; its
 * details list the faults of all branches. A cancel is thrown at once, because it is not an outcome of a branch
 * (C2).
 */
async function firstSuccess<Value>(
  results: readonly Promise<RaceResult<Value>>[],
  names: readonly string[],
): Promise<RaceResult<Value>> {
  const cancelled = results.map(async (result) =>
    result.catch((error: unknown) => {
      if (isOutcome(Fault.from(error))) return pendingForever();
      throw error;
    }),
  );
  try {
    return await Promise.race([Promise.any(results), ...cancelled]);
  } catch (error) {
    if (!(error instanceof AggregateError)) throw error;
    const failures = error.errors.map((each) => Fault.from(each).toJSON());
    throw withBranches(failures, names);
  }
}

function withBranches(failures: readonly Failure[], names: readonly string[]): Fault {
  const [first = new Fault("internal", "no branch succeeded").toJSON()] = failures;
  const branches = failures.map(({ code, message }, index) => ({
    branch: names[index] ?? "",
    code,
    message,
  }));
  return reviveFault({ ...first, details: { ...first.details, branches } });
}

/** The items of `ctx.map`, and the function that is called for each. */
interface MappedItems {
  readonly count: number;
  readonly concurrency: number;
  readonly contextOf: (index: number) => NestedContext;
  readonly perform: (ctx: NestedContext, index: number) => Promise<JsonValue>;
}

/** A result of `ctx.map` in recorded form. */
type RecordedItem =
  | { readonly status: "fulfilled"; readonly value: JsonValue }
  | { readonly status: "rejected"; readonly failure: Failure };

/**
 * Calls a function for each item, for at most `concurrency` items at the same time. An error becomes the result of
 * its item. A cancel does not (C2): it ends the work when the items that have begun have settled, and is then
 * thrown.
 */
async function mapItems(step: ActiveStep, mapped: MappedItems): Promise<readonly RecordedItem[]> {
  const { count, concurrency, contextOf, perform } = mapped;
  const results: RecordedItem[] = [];
  const { inside } = step.runner;
  let next = 0;
  let stop: { readonly error: unknown } | undefined;
  const work = async (): Promise<void> => {
    while (next < count && stop === undefined) {
      const index = next++;
      const ctx = contextOf(index);
      try {
        const value = await insideBranch(inside, step.cancelScope.token, () => perform(ctx, index));
        results[index] = { status: "fulfilled", value };
      } catch (error) {
        const fault = Fault.from(error);
        if (isOutcome(fault)) results[index] = { status: "rejected", failure: fault.toJSON() };
        else stop ??= { error };
      } finally {
        for (const draft of ctx.takeEvents()) step.emit(draft);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, count) }, work));
  if (stop !== undefined) throw stop.error;
  return results;
}

/** Returns the items of `ctx.map` at this address as branches. */
function itemBranches(
  address: StepAddress,
  count: number,
  contextOf: ItemContext,
  perform: (ctx: NestedContext, index: number) => Promise<unknown>,
): StepBranches {
  const indexes = Array.from({ length: count }, (_, index) => index);
  return {
    branches: Object.fromEntries(
      indexes.map((index) => [index, (ctx) => perform(ctx as NestedContext, index)]),
    ),
    contextOf: (name, cancelScope) => contextOf(address, Number(name), cancelScope),
  };
}

/** Creates the context of an item of `ctx.map` at this address. */
type ItemContext = (address: StepAddress, index: number, cancelScope: CancellationScope) => NestedContext;

/**
 * Runs `ctx.map`. All results form one record. J5: if code throws the error of an item and the task ends with it,
 * `resume` processes this item again.
 */
export function runMap<Value extends JsonValue>(
  steps: StepExecutor,
  count: number,
  concurrency: number,
  contextOf: ItemContext,
  perform: (ctx: NestedContext, index: number) => Promise<Value>,
): Promise<readonly SettledItem<Value>[]> {
  const step = steps.identifyBranches("step", "map", { count });
  const { address } = step;
  const given = (item: RecordedItem): SettledItem<Value> => {
    if (item.status === "fulfilled") return { status: "fulfilled", value: item.value as Value };
    const { failure: reason } = item;
    steps.runner.journal.noteOrigins(reason, [address]);
    return { status: "rejected", reason };
  };
  return runBranchStep<readonly RecordedItem[], readonly SettledItem<Value>[]>(
    steps,
    step,
    () => itemBranches(address, count, contextOf, perform),
    (open) =>
      mapItems(open, {
        count,
        concurrency,
        contextOf: (index) => contextOf(address, index, open.cancelScope),
        perform: async (ctx, index) => (await perform(ctx, index)) ?? null,
      }),
    (items) => items.map(given),
  );
}
