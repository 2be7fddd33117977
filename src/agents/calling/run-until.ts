import {
  describeValue,
  executionBudget,
  Fault,
  is,
  optionTable,
  type Filled,
  type OptionKinds,
  longestRunId,
  parseRunId,
  tightenBudget,
  type Clock,
  type ExecutionBudget,
  type RunId,
  type RunResult,
  changedResult,
  HistoryRetention,
} from "../../kernel/index.ts";
import type { AgentInput } from "../base/agent-input.ts";
import { invokeKinds, ofAgent, type InvokeOptions } from "./invoke-options.ts";
import { askJudge, requireGoal, type AskJudge } from "./goal-judge.ts";
import { CombinedSpending, type SpentDimension } from "./combined-spending.ts";

/** The state that `until` receives after each invocation. */
export interface RoundState<Output = string> {
  readonly result: RunResult<Output>;
  /** The number of the iteration, from 1. */
  readonly iteration: number;
  /** The cost of all iterations so far; `null` if it is unknown. */
  readonly costUsd: number | null;
}

/**
 * Options of every loop. `budget` and `timeoutMs` apply to all iterations together, including `until` and the
 * judge. The agent's own budget applies to each iteration.
 */
interface LoopOptions<Context> extends Omit<InvokeOptions<never, Context>, "runId" | "output"> {
  /** Maximum number of iterations. Default: 20. */
  readonly maxIterations?: number;
  /** How many times in a row the agent may give the same answer before the loop stops. Default: 3. */
  readonly maxUnchanged?: number;
  /** An alias of `budget.maxCostUsd`. */
  readonly maxCostUsd?: number;
  /**
   * The id of the whole loop. A second call with the same id, for example after a crash, does not repeat finished
   * iterations and verdicts. The run of each iteration has this id with its number.
   */
  readonly runId?: string;
}

/** Options of `runUntil` with a function that accepts answers. */
export interface RunUntilOptions<Context = unknown> extends LoopOptions<Context> {
  /**
   * Decides about an answer. Returns `true` to accept the answer, or the text to send next. With `false` or a blank
   * text, a standard text is sent.
   */
  readonly until: (state: RoundState) => boolean | string | Promise<boolean | string>;
  readonly judge?: never;
}

/** Options of `runUntil` with a judge that accepts answers. */
export interface JudgedLoopOptions<Context = unknown> extends LoopOptions<Context> {
  /**
   * The goal, as a text for the model of the role `judge`, or the main model if the agent has none. The model decides
   * after each iteration whether the answer reaches the goal, and otherwise says what to send next. Each verdict is a run,
   * whose cost is part of the result. After three verdicts in a row that cannot be read, the loop ends as `paused`.
   */
  readonly judge: string;
  readonly until?: never;
}

const { output: _output, ...kindsOfRuns } = invokeKinds;

const loopKinds = {
  ...kindsOfRuns,
  until: is.callback({ hint: "use judge for a goal in words" }),
  judge: is.checkedBy(requireGoal),
  maxIterations: is.integer({ from: 1, default: 20 }),
  maxUnchanged: is.integer({ from: 1, default: 3 }),
  maxCostUsd: is.any,
} satisfies OptionKinds<Omit<RunUntilOptions | JudgedLoopOptions, "output">>;

const loopTable = optionTable(loopKinds, ofAgent);

type CheckedLoop = Filled<RunUntilOptions | JudgedLoopOptions, typeof loopKinds>;

/** Checks the options and returns them with their defaults. Throws for unknown options before an iteration is paid. */
export function readLoopOptions(options: RunUntilOptions | JudgedLoopOptions): CheckedLoop {
  const checked = loopTable.read("runUntil()", options);
  if ((checked.until === undefined) === (checked.judge === undefined))
    throw new Fault(
      "invalid_argument",
      `invalid options of runUntil(): expected either until or judge${checked.until === undefined ? "" : ", not both"}`,
    );
  return checked;
}

/** The agent that the loop invokes. */
export interface InvokableAgent {
  readonly invoke: (input: AgentInput, options: InvokeOptions) => Promise<RunResult>;
  /** Runs the agent that gives a verdict about an answer. */
  readonly judge: (prompt: string, options: InvokeOptions) => Promise<RunResult>;
  /** The clock of the runtime. */
  readonly clock: Clock;
  /** The deadline of each run according to the agent's own budget; `null` if it has none. */
  readonly deadlineMs: number | null;
}

/**
 * Executes one run per iteration, all in one session. It stops when `until` or the judge accepts the answer, when an
 * iteration or a verdict does not complete, or at a limit. At a limit, the interruption reason is `run_until:<reason>` and the output is the last
 * answer. The usage covers all iterations.
 */
export async function runUntil(
  { invoke, judge: runJudge, clock, deadlineMs: eachMs }: InvokableAgent,
  input: AgentInput,
  options: CheckedLoop,
): Promise<RunResult> {
  const { until, judge: goal, maxIterations, maxUnchanged, maxCostUsd, runId, timeoutMs } = options;
  const rest = invokeOptionsIn(options);
  if (runId !== undefined) requireRoom(runId, maxIterations, goal !== undefined);
  const { deadlineMs, ...caps } = wholeBudget(rest.budget, { maxCostUsd, deadlineMs: timeoutMs });
  const endsAt = deadlineMs === null ? null : clock.now() + deadlineMs;
  const bill = new CombinedSpending(caps);
  const budgetLeft = (): ExecutionBudget => ({
    ...bill.left,
    deadlineMs: endsAt === null ? null : Math.max(0, endsAt - clock.now()),
  });
  const askFor =
    (iteration: number): AskJudge =>
    async (prompt, attempt) => {
      if (rest.signal?.aborted === true) return { ...aborted, error: null };
      const each = runId === undefined ? {} : { runId: judgeRunId(runId, iteration, attempt) };
      const left = budgetLeft();
      const asked = await runJudge(prompt, { ...judgeRunOptions(rest), ...each, budget: left });
      bill.add(asked);
      const { status, interruptionReason, error } = asked;
      if (status === "completed") return asked;
      const stop = stopOf(asked, left, deadlineMs !== null);
      return stop === undefined ? { status, interruptionReason, error } : { ...atGuard(stop), error };
    };
  let next = input;
  let unchanged = 0;
  let answered: RunResult | undefined;
  let sessionId = rest.sessionId;
  for (let iteration = 1; ; iteration++) {
    const each = runId === undefined ? {} : { runId: parseRunId(`${runId}-${iteration}`) };
    const left = budgetLeft();
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
    const verdict =
      goal === undefined
        ? await until({ result, iteration, costUsd: bill.costUsd })
        : await askJudge(goal, result.output, askFor(iteration));
    if (goal !== undefined && typeof verdict === "object") return bill.of(changedResult(result, verdict));
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
    if (rest.signal?.aborted === true) return bill.of(changedResult(result, aborted));
  }
}

const aborted = { status: "cancelled", interruptionReason: "the signal was aborted" } as const;

/** The options of the loop that each iteration receives. */
function invokeOptionsIn(options: RunUntilOptions | JudgedLoopOptions): InvokeOptions {
  const {
    until: _until,
    judge: _judge,
    maxIterations: _maxIterations,
    maxUnchanged: _maxUnchanged,
    maxCostUsd: _maxCostUsd,
    runId: _runId,
    timeoutMs: _timeoutMs,
    ...rest
  } = options;
  return rest;
}

/** The options of the loop that apply to the judge. Its runs have sessions of their own, which end with them. */
function judgeRunOptions({ runtime, signal, userId, tenantId, priority }: InvokeOptions): InvokeOptions {
  return {
    retention: HistoryRetention.RUN,
    ...(runtime !== undefined && { runtime }),
    ...(signal !== undefined && { signal }),
    ...(userId !== undefined && { userId }),
    ...(tenantId !== undefined && { tenantId }),
    ...(priority !== undefined && { priority }),
  };
}

function judgeRunId(runId: string, iteration: number, attempt: number): RunId {
  return parseRunId(`${runId}-${iteration}-judge-${attempt}`);
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
 * Returns the limit of the whole loop that stopped an iteration, or `undefined`. An iteration receives the rest of
 * the loop's budget. `isTimed` says that the loop has a time limit: if an iteration then runs out of time, this
 * limit is the reason.
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
 * Converts the result of `until` to the next message. It throws for invalid results, because every further
 * iteration costs money.
 */
function wordsOf(verdict: unknown): string {
  if (typeof verdict === "string" && verdict.trim() !== "") return verdict;
  if (verdict === false || typeof verdict === "string") return "Continue: it is not done.";
  throw new Fault(
    "invalid_argument",
    `invalid result ${describeValue(verdict)} of until: expected true to accept the answer, false to continue, or the text to send next`,
  );
}

/** Throws for a run id that is too long for adding the iteration numbers, before any call is paid. */
function requireRoom(runId: string, maxIterations: number, isJudged: boolean): void {
  const { length } = `${parseRunId(runId)}-${maxIterations}${isJudged ? "-judge-1" : ""}`;
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
