import { Fault, parseRunId, type RunResult, type SubmitOptions } from "../kernel/index.ts";
import type { AgentInput } from "./agent-input.ts";
import type { InvokeOptions } from "./agent.ts";
import { Bill } from "./bill.ts";

/** What `until` is shown after each invocation. */
export interface RoundState<Output> {
  readonly result: RunResult<Output>;
  /** From 1. */
  readonly iteration: number;
  /** Of all iterations so far; `null`: not known. */
  readonly costUsd: number | null;
}

export interface RunUntilOptions<Output> extends Omit<InvokeOptions, "runId"> {
  /** `true`: it will do. A text is what to say to it next; `false` says only to go on. */
  readonly until: (state: RoundState<Output>) => boolean | string | Promise<boolean | string>;
  /** 20 unless told. */
  readonly maxIterations?: number;
  /** How often it may say the same in the same words before it is given up; 3 unless told. */
  readonly maxUnchanged?: number;
  /** Of all iterations together. */
  readonly maxCostUsd?: number;
  /** Asking again under the same id, after a crash, pays for nothing that was answered. */
  readonly runId?: string;
}

type Invoke<Output> = (input: AgentInput, options: InvokeOptions) => Promise<RunResult<Output>>;

/**
 * A run for each iteration, all in one session. Stops when `until` says so, when an iteration did not complete, or at a guard; a guard
 * leaves `run_until:<reason>` as the interruption, and the last answer there was. What it used is that of all iterations.
 */
export async function runUntil<Output>(
  invoke: Invoke<Output>,
  input: AgentInput,
  options: RunUntilOptions<Output>,
): Promise<RunResult<Output>> {
  const { until, maxIterations = 20, maxUnchanged = 3, maxCostUsd, runId, ...rest } = options;
  requireCount("maxIterations", maxIterations);
  requireCount("maxUnchanged", maxUnchanged);
  if (maxCostUsd !== undefined && !(maxCostUsd >= 0))
    throw new Fault("invalid_argument", `maxCostUsd is ${maxCostUsd}: it must be a number from 0`);
  const bill = new Bill(maxCostUsd);
  let next = input;
  let unchanged = 0;
  let answered: RunResult<Output> | undefined;
  let sessionId = rest.sessionId;
  for (let iteration = 1; ; iteration++) {
    const each = runId === undefined ? {} : { runId: parseRunId(`${runId}-${iteration}`) };
    const { leftUsd } = bill;
    const budget = within(rest.budget, leftUsd);
    const result = await invoke(next, {
      ...rest,
      ...each,
      ...budget,
      ...(sessionId !== undefined && { sessionId }),
    });
    sessionId = result.sessionId;
    bill.add(result);
    if (isStoppedAt(leftUsd, result)) {
      const { failure } = result;
      return bill.of({ ...(answered ?? result), ...atGuard("max_cost"), failure });
    }
    if (result.status !== "completed") return bill.of(result);
    const verdict = await until({ result, iteration, costUsd: bill.costUsd });
    if (verdict === true) return bill.of(result);
    unchanged = answered !== undefined && isSame(answered, result) ? unchanged + 1 : 1;
    answered = result;
    const guard =
      iteration >= maxIterations
        ? "max_iterations"
        : unchanged >= maxUnchanged
          ? "no_progress"
          : bill.leftUsd === 0
            ? "max_cost"
            : undefined;
    if (guard !== undefined) return bill.of({ ...result, ...atGuard(guard) });
    next = typeof verdict === "string" ? verdict : "Go on: it is not done yet.";
  }
}

type Guard = "max_iterations" | "no_progress" | "max_cost";

function atGuard(guard: Guard): Pick<RunResult, "status" | "interruptionReason"> {
  const status = guard === "max_cost" ? "budget_exhausted" : "max_turns";
  return { status, interruptionReason: `run_until:${guard}` };
}

/** By the cap on all iterations, which an iteration has as its own. */
function isStoppedAt(leftUsd: number | undefined, { status, failure }: RunResult<unknown>): boolean {
  const { dimension, limit } = failure?.details ?? {};
  return status === "budget_exhausted" && dimension === "costUsd" && limit === leftUsd;
}

function isSame(one: RunResult<unknown>, other: RunResult<unknown>): boolean {
  return (
    one.usage.outputTokens === other.usage.outputTokens &&
    JSON.stringify(one.output) === JSON.stringify(other.output)
  );
}

function requireCount(name: "maxIterations" | "maxUnchanged", value: number): void {
  if (Number.isSafeInteger(value) && value >= 1) return;
  throw new Fault("invalid_argument", `${name} is ${value}: it must be an integer from 1`);
}

function within(
  budget: SubmitOptions["budget"] = {},
  leftUsd: number | undefined,
): Pick<SubmitOptions, "budget"> {
  if (leftUsd === undefined) return { budget };
  return { budget: { ...budget, maxCostUsd: Math.min(leftUsd, budget.maxCostUsd ?? Infinity) } };
}
