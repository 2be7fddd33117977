import { Fault, parseRunId, type RunId, type RunResult, type SubmitOptions } from "../kernel/index.ts";
import type { AgentInput } from "./agent-input.ts";
import type { InvokeOptions } from "./agent.ts";

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
  readonly runId?: RunId;
}

type Invoke<Output> = (input: AgentInput, options: InvokeOptions) => Promise<RunResult<Output>>;

/**
 * A run for each iteration, all in one session. Stops when `until` says so, when an iteration did not complete, or at a guard; a guard
 * leaves `run_until:<reason>` as the interruption.
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
  let next = input;
  let spent: number | null = 0;
  let unchanged = 0;
  let before: string | undefined;
  let sessionId = rest.sessionId;
  for (let iteration = 1; ; iteration++) {
    const each = runId === undefined ? {} : { runId: parseRunId(`${runId}-${iteration}`) };
    const budget = withinCost(rest.budget, maxCostUsd, spent ?? 0);
    const result = await invoke(next, { ...rest, ...each, ...budget, ...(sessionId && { sessionId }) });
    sessionId = result.sessionId;
    spent = spent === null || result.costUsd === null ? null : spent + result.costUsd;
    if (result.status !== "completed") return result;
    const verdict = await until({ result, iteration, costUsd: spent });
    if (verdict === true) return result;
    const fingerprint = `${result.usage.outputTokens} ${JSON.stringify(result.output)}`;
    unchanged = fingerprint === before ? unchanged + 1 : 1;
    before = fingerprint;
    const guard =
      iteration >= maxIterations
        ? "max_iterations"
        : unchanged >= maxUnchanged
          ? "no_progress"
          : maxCostUsd !== undefined && spent !== null && spent >= maxCostUsd
            ? "max_cost"
            : undefined;
    if (guard !== undefined)
      return { ...result, status: "max_turns", interruptionReason: `run_until:${guard}` };
    next = typeof verdict === "string" ? verdict : "Go on: it is not done yet.";
  }
}

function requireCount(name: "maxIterations" | "maxUnchanged", value: number): void {
  if (Number.isSafeInteger(value) && value >= 1) return;
  throw new Fault("invalid_argument", `${name} is ${value}: it must be an integer from 1`);
}

function withinCost(
  budget: SubmitOptions["budget"] = {},
  maxCostUsd: number | undefined,
  spent: number,
): Pick<SubmitOptions, "budget"> {
  if (maxCostUsd === undefined) return { budget };
  const left = Math.max(0, maxCostUsd - spent);
  return { budget: { ...budget, maxCostUsd: Math.min(left, budget.maxCostUsd ?? Infinity) } };
}
