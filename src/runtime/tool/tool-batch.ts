import type { StepAddress, ToolCall, ToolResult, ToolsOptions } from "../../kernel/index.ts";
import type { CallingScope } from "./gate-context.ts";
import { findTool } from "./received-call.ts";
import { callTool, ToolStep } from "./tool-call.ts";

/** Tool calls of one model reply, which run concurrently in one scope. */
export interface ToolBatch {
  /** J2: address of the model call. Each tool call has the address `<scope>/<position>`. */
  readonly scope: StepAddress;
  /** Position of the first call. */
  readonly first: number;
  /** Position from which on calls are not executed. */
  readonly limit: number;
  readonly calls: readonly ToolCall[];
  readonly options: ToolsOptions;
}

/**
 * Calls the tools concurrently, at most `maxParallel` at a time, and returns their results in call order. A
 * sequential tool starts after all calls before it have settled, and later calls wait for it. A call that throws
 * prevents calls that have not started. A call that exceeds the limit of the turn is not executed, so that it
 * neither waits nor counts.
 */
export async function callTools(
  from: CallingScope,
  { scope, first, limit, calls, options }: ToolBatch,
): Promise<readonly ToolResult[]> {
  const { steps } = from;
  const { agent, journal } = steps.runner;
  const { extra, onResult, maxParallel = Infinity } = options;
  const settled: Promise<PromiseSettledResult<ToolResult>>[] = [];
  const running = new Map<number, Promise<unknown>>();
  let hasThrown = false;
  for (const [index, call] of calls.entries()) {
    const step = new ToolStep({ scope, position: first + index, limit }, call, from, options);
    const run = async (): Promise<PromiseSettledResult<ToolResult>> => {
      const result = await settle(() => steps.runInScope<ToolResult, ToolStep>(step, callTool, step.start));
      if (result.status === "fulfilled") onResult?.(result.value, index);
      else hasThrown = true;
      running.delete(index);
      return result;
    };
    const isExecuted = step.exceededLimit === undefined;
    const isSequential = isExecuted && findTool(agent, call.toolName, extra)?.concurrency === "sequential";
    if (isSequential) await Promise.all(settled);
    else if (isExecuted && running.size >= maxParallel) await Promise.race(running.values());
    if (hasThrown) break;
    const result = run();
    settled.push(result);
    if (isExecuted) running.set(index, result);
    if (isSequential) await result;
  }
  return noteResults(from, calls, journal.valuesOf(await Promise.all(settled)));
}

/**
 * Adds settled calls, in call order, to the history for the agent's checks. F1: an agent without such checks has no
 * history.
 */
export function noteResults(
  { steps, history }: CallingScope,
  calls: readonly ToolCall[],
  results: readonly ToolResult[],
): readonly ToolResult[] {
  const pipeline = steps.runner.agent.callPath?.tool;
  if (pipeline?.before === undefined && pipeline?.after === undefined) return results;
  for (const [index, result] of results.entries()) {
    const call = calls[index];
    if (call !== undefined) history.add({ call, result });
  }
  return results;
}

async function settle<Value>(work: () => Value | Promise<Value>): Promise<PromiseSettledResult<Value>> {
  try {
    return { status: "fulfilled", value: await work() };
  } catch (reason) {
    return { status: "rejected", reason };
  }
}
