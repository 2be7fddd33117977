import {
  checkOptions,
  describeValue,
  executionBudget,
  Fault,
  longestRunId,
  optionNames,
  parseRunId,
  tightenBudget,
  type Clock,
  type ExecutionBudget,
  type OptionNames,
  type RunResult,
  changedResult,
} from "../kernel/index.ts";
import type { AgentInput } from "./agent-input.ts";
import { invokeOptionNames, type InvokeOptions } from "./invoke-options.ts";
import { CombinedSpending, type SpentDimension } from "./combined-spending.ts";

/** The state that `until` receives after each invocation. */
export interface RoundState<Output> {
  readonly result: RunResult<Output>;
  /** The number of the iteration, from 1. */
  readonly iteration: number;
  /** The cost of all iterations so far; `null` if it is unknown. */
  readonly costUsd: number | null;
}

/**
 * `budget` and `timeoutMs` apply to all iterations together, including `until`. The agent's own budget applies to each.
 */
export interface RunUntilOptions<Output, Context = unknown> extends Omit<InvokeOptions<Context>, "runId"> {
  /**
   * Returns `true` to accept the answer, or the text to send next. `false` and a blank text continue with a standard
   * text.
   */
  readonly until: (state: RoundState<Output>) => boolean | string | Promise<boolean | string>;
  /** Maximum number of iterations. Default: 20. */
  readonly maxIterations?: number;
  /** How many times in a row the agent may give the same answer before the loop stops. Default: 3. */
  readonly maxUnchanged?: number;
  /** An alias of `budget.maxCostUsd`. */
  readonly maxCostUsd?: number;
  /**
   * The id of the whole loop. A second call with the same id, for example after a crash, repeats no finished iteration.
   * Each iteration's run appends its number.
   */
  readonly runId?: string;
}

const names: OptionNames = new Set([
  ...invokeOptionNames,
  ...optionNames<Omit<RunUntilOptions<unknown>, Exclude<keyof InvokeOptions, "runId">>>({
    until: true,
    maxIterations: true,
    maxUnchanged: true,
    maxCostUsd: true,
    runId: true,
  }),
]);

/** Refuses unknown options before an iteration is paid. */
export function checkRunUntilOptions(options: RunUntilOptions<never>): void {
  checkOptions("runUntil()", options, names);
}

/** The agent that the loop invokes. */
export interface InvokableAgent<Output> {
  readonly invoke: (input: AgentInput, options: InvokeOptions) => Promise<RunResult<Output>>;
  /** The clock of the runtime. */
  readonly clock: Clock;
  /** The deadline of each run according to the agent's own budget; `null` if it has none. */
  readonly deadlineMs: number | null;
}

/**
 * Executes one run per iteration, all in one session. It stops when `until` accepts the answer, when an iteration does
 * not complete, or at a limit. At a limit, the interruption reason is `run_until:<reason>` and the output is the last
 * answer. The usage covers all iterations.
 */
export async function runUntil<Output>(
  { invoke, clock, deadlineMs: eachMs }: InvokableAgent<Output>,
  input: AgentInput,
  options: RunUntilOptions<Output>,
): Promise<RunResult<Output>> {
  const { until, maxIterations = 20, maxUnchanged = 3, maxCostUsd, runId, timeoutMs, ...rest } = options;
  requireCount("maxIterations", maxIterations);
  requireCount("maxUnchanged", maxUnchanged);
  if (runId !== undefined) requireRoom(runId, maxIterations);
  const { deadlineMs, ...caps } = wholeBudget(rest.budget, { maxCostUsd, deadlineMs: timeoutMs });
  const endsAt = deadlineMs === null ? null : clock.now() + deadlineMs;
  const bill = new CombinedSpending(caps);
  let next = input;
  let unchanged = 0;
  let answered: RunResult<Output> | undefined;
  let sessionId = rest.sessionId;
  for (let iteration = 1; ; iteration++) {
    const each = runId === undefined ? {} : { runId: parseRunId(`${runId}-${iteration}`) };
    const left = { ...bill.left, deadlineMs: endsAt === null ? null : Math.max(0, endsAt - clock.now()) };
    const result = await invoke(next, {
      ...rest,
      ...each,
      budget: left,
      ...(sessionId !== undefined && { sessionId }),
    });
    sessionId = result.sessionId;
    bill.add(result);
    // The clock cannot decide this: a repeated call with the same id learns of a stop that happened long ago.
    const isLoops =
      answered !== undefined || eachMs === null || (deadlineMs !== null && eachMs >= deadlineMs);
    const stop = stopOf(result, left, deadlineMs !== null && isLoops);
    if (stop !== undefined) {
      const { error: failure } = result;
      return bill.of({ ...(answered ?? result), ...atGuard(stop), error: failure });
    }
    if (result.status !== "completed") return bill.of(result);
    const verdict = await until({ result, iteration, costUsd: bill.costUsd });
    if (verdict === true) return bill.of(result);
    next = wordsOf(verdict);
    unchanged = answered !== undefined && isSame(answered, result) ? unchanged + 1 : 1;
    answered = result;
    const guard =
      iteration >= maxIterations
        ? "max_iterations"
        : unchanged >= maxUnchanged
          ? "no_progress"
          : (guardOf(bill.exhausted) ?? (endsAt !== null && clock.now() >= endsAt ? "deadline" : undefined));
    if (guard !== undefined) return bill.of(changedResult(result, atGuard(guard)));
    if (rest.signal?.aborted === true)
      return bill.of(
        changedResult(result, { status: "cancelled", interruptionReason: "the signal was aborted" } as const),
      );
  }
}

const spentGuards = { costUsd: "max_cost", tokens: "max_tokens", turns: "max_turns" } as const;

type Guard = "max_iterations" | "no_progress" | "deadline" | (typeof spentGuards)[SpentDimension];

function guardOf(dimension: SpentDimension | undefined): Guard | undefined {
  return dimension === undefined ? undefined : spentGuards[dimension];
}

function atGuard(guard: Guard): Pick<RunResult, "status" | "interruptionReason"> {
  return { status: statusAt(guard), interruptionReason: `run_until:${guard}` };
}

function statusAt(guard: Guard): RunResult["status"] {
  if (guard === "max_iterations" || guard === "no_progress") return "max_turns";
  return guard === "deadline" ? "deadline_exceeded" : "budget_exhausted";
}

/**
 * The limit of the whole loop that stopped an iteration, or `undefined`. An iteration receives what is left of the
 * loop's budget. `isTimed` means that an iteration that ran out of time is attributed to the loop's limit.
 */
function stopOf(
  { status, error: failure }: RunResult<unknown>,
  left: ExecutionBudget,
  isTimed: boolean,
): Guard | undefined {
  if (status === "deadline_exceeded") return isTimed ? "deadline" : undefined;
  if (status !== "budget_exhausted") return undefined;
  const { dimension, limit } = failure?.details ?? {};
  const limits = { costUsd: left.maxCostUsd, tokens: left.maxTokens, turns: left.maxTurns };
  for (const [each, most] of Object.entries(limits))
    if (most !== null && each === dimension && most === limit) return guardOf(each as SpentDimension);
  return undefined;
}

function isSame(one: RunResult<unknown>, other: RunResult<unknown>): boolean {
  return (
    one.usage.outputTokens === other.usage.outputTokens &&
    JSON.stringify(one.output) === JSON.stringify(other.output)
  );
}

/**
 * Converts the result of `until` to the next message. It throws for invalid results, because every further iteration
 * costs money.
 */
function wordsOf(verdict: unknown): string {
  if (typeof verdict === "string" && verdict.trim() !== "") return verdict;
  if (verdict === false || typeof verdict === "string") return "Continue: it is not done.";
  throw new Fault(
    "invalid_argument",
    `invalid result ${describeValue(verdict)} of until: expected true to accept the answer, false to continue, or the text to send next`,
  );
}

function requireCount(name: "maxIterations" | "maxUnchanged", value: number): void {
  if (Number.isSafeInteger(value) && value >= 1) return;
  throw new Fault("invalid_argument", `invalid ${name} ${value}: expected an integer from 1`);
}

/** Refuses a run id that is too long for the iteration numbers, before any call is paid. */
function requireRoom(runId: string, maxIterations: number): void {
  const { length } = `${parseRunId(runId)}-${maxIterations}`;
  if (length <= longestRunId) return;
  throw new Fault(
    "invalid_argument",
    `invalid runId: it has ${runId.length} characters, and ${length} with the number of an iteration up to ${maxIterations}; expected at most ${longestRunId}`,
  );
}

function wholeBudget(
  budget: Partial<ExecutionBudget> | null | undefined,
  more: { readonly maxCostUsd: number | undefined; readonly deadlineMs: number | null | undefined },
): ExecutionBudget {
  const { maxCostUsd, deadlineMs } = more;
  return tightenBudget(executionBudget(budget ?? undefined), {
    ...(maxCostUsd !== undefined && { maxCostUsd }),
    ...(deadlineMs !== undefined && { deadlineMs }),
  });
}
