import {
  describeValue,
  executionBudget,
  Fault,
  longestRunId,
  parseRunId,
  tightenBudget,
  type Clock,
  type ExecutionBudget,
  type RunResult,
} from "../kernel/index.ts";
import type { AgentInput } from "./agent-input.ts";
import type { InvokeOptions } from "./invoke-options.ts";
import { Bill, type SpentDimension } from "./bill.ts";

/** What `until` is shown after each invocation. */
export interface RoundState<Output> {
  readonly result: RunResult<Output>;
  /** From 1. */
  readonly iteration: number;
  /** Of all iterations so far; `null`: not known. */
  readonly costUsd: number | null;
}

/** `budget` and `timeoutMs` are of all iterations together, `until` included; the agent's own budget is of each. */
export interface RunUntilOptions<Output> extends Omit<InvokeOptions, "runId"> {
  /** `true`: it will do. A text is what to say to it next; `false`, or a text without words, says only to go on. */
  readonly until: (state: RoundState<Output>) => boolean | string | Promise<boolean | string>;
  /** 20 unless told. */
  readonly maxIterations?: number;
  /** How often it may say the same in the same words before it is given up; 3 unless told. */
  readonly maxUnchanged?: number;
  /** The same as `budget.maxCostUsd`. */
  readonly maxCostUsd?: number;
  /** Asking again under the same id, after a crash, pays for nothing that was answered. Each iteration's run adds its number to it. */
  readonly runId?: string;
}

/** The agent that is asked. */
export interface AskedAgent<Output> {
  readonly invoke: (input: AgentInput, options: InvokeOptions) => Promise<RunResult<Output>>;
  /** That of the runtime it is asked in. */
  readonly clock: Clock;
  /** Of each run, by the agent's own budget; `null`: it has none. */
  readonly deadlineMs: number | null;
}

/**
 * A run for each iteration, all in one session. Stops when `until` says so, when an iteration did not complete, or at a guard; a guard
 * leaves `run_until:<reason>` as the interruption, and the last answer there was. What it used is that of all iterations.
 */
export async function runUntil<Output>(
  { invoke, clock, deadlineMs: eachMs }: AskedAgent<Output>,
  input: AgentInput,
  options: RunUntilOptions<Output>,
): Promise<RunResult<Output>> {
  const { until, maxIterations = 20, maxUnchanged = 3, maxCostUsd, runId, timeoutMs, ...rest } = options;
  requireCount("maxIterations", maxIterations);
  requireCount("maxUnchanged", maxUnchanged);
  if (runId !== undefined) requireRoom(runId, maxIterations);
  const { deadlineMs, ...caps } = wholeBudget(rest.budget, { maxCostUsd, deadlineMs: timeoutMs });
  const endsAt = deadlineMs === null ? null : clock.now() + deadlineMs;
  const bill = new Bill(caps);
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
    // Not by the clock: asked again under its id, the loop is told of a stop that was long ago.
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
    if (guard !== undefined) return bill.of({ ...result, ...atGuard(guard) });
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
 * The guard on all iterations that stopped one, which had what was left as its own. `undefined`: none did. `isTimed`: one that is out of
 * time is out of the loop's, as far as can be told.
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

/** Callers without types may return anything: what was not meant as `false` must not be paid for, round after round. */
function wordsOf(verdict: unknown): string {
  if (typeof verdict === "string" && verdict.trim() !== "") return verdict;
  if (verdict === false || typeof verdict === "string") return "Go on: it is not done yet.";
  throw new Fault(
    "invalid_argument",
    `until returned ${describeValue(verdict)}: it must be true if it will do, false if not, or a text that is said next`,
  );
}

function requireCount(name: "maxIterations" | "maxUnchanged", value: number): void {
  if (Number.isSafeInteger(value) && value >= 1) return;
  throw new Fault("invalid_argument", `${name} is ${value}: it must be an integer from 1`);
}

/** Before anything is paid. */
function requireRoom(runId: string, maxIterations: number): void {
  const { length } = `${parseRunId(runId)}-${maxIterations}`;
  if (length <= longestRunId) return;
  throw new Fault(
    "invalid_argument",
    `runId has ${runId.length} characters: with the number of an iteration, up to ${maxIterations}, it has ${length}, and ${longestRunId} is the most`,
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
