import {
  BudgetExhaustedError,
  CancellationError,
  Fault,
  MiddlewareTermination,
  type EventDraft,
  type JsonValue,
  type RunContext,
  type Tool,
  type ToolCall,
  type ToolResult,
} from "../kernel/index.ts";
import type { TaskRunner } from "./task-runner.ts";

export interface ToolCallOptions {
  readonly runner: TaskRunner;
  readonly call: ToolCall;
  readonly idempotencyKey: string;
  /** For a body that takes steps of its own, scoped under this call (J7). */
  readonly ctx: RunContext;
  readonly tell: (draft: EventDraft) => void;
}

/** One call of a tool. T2: what goes wrong inside it is a result the model can react to. */
export async function callTool(options: ToolCallOptions): Promise<ToolResult> {
  const { runner, call, tell } = options;
  const { callId, toolName } = call;
  const startedAt = runner.owner.clock.now();
  const result = await execute(options);
  const durationMs = runner.owner.clock.now() - startedAt;
  tell({ type: "tool_execution_end", data: { callId, toolName, result, durationMs } });
  return result;
}

async function execute(options: ToolCallOptions): Promise<ToolResult> {
  const { runner, call } = options;
  const tool = runner.findTool(call.toolName);
  if (tool === undefined) {
    const known = (runner.agent.tools ?? []).map(({ name }) => name).join(", ");
    return failure(`there is no tool ${call.toolName}; there are: ${known || "none"}`);
  }
  const { tools: allowed } = runner.task.record;
  if (allowed !== null && !allowed.includes(call.toolName)) {
    runner.tell({
      type: "permission_deny",
      data: {
        callId: call.callId,
        toolName: call.toolName,
        by: "whitelist",
        reason: "not one of this task's tools",
      },
    });
    return failure(
      `${call.toolName} may not be called by this task; it may call: ${allowed.join(", ") || "none"}`,
    );
  }
  try {
    const input = await tool.parse(call.input);
    return tool.suspends ? await body(options, tool, input) : await working(options, tool, input);
  } catch (error) {
    if (stopsRun(error)) throw error;
    return failure(Fault.from(error).message);
  }
}

async function working(options: ToolCallOptions, tool: Tool, input: unknown): Promise<ToolResult> {
  const { runner } = options;
  await runner.begin();
  try {
    return await withTimeout(options, tool, body(options, tool, input));
  } finally {
    runner.finish();
  }
}

function body(
  { runner, call, idempotencyKey, ctx }: ToolCallOptions,
  tool: Tool,
  input: unknown,
): Promise<ToolResult> {
  const { meta, facts, signal, log, taskId } = runner;
  const { callId } = call;
  const progress = (update: JsonValue): void => {
    const { runId } = log.lease;
    runner.owner.store.events.putDelta(log.lease, {
      type: "tool_execution_update",
      runId,
      taskId,
      callId,
      update,
    });
  };
  return tool.execute(input, { meta, facts, signal, idempotencyKey, callId, progress, ctx });
}

function withTimeout(
  { runner, call }: ToolCallOptions,
  { timeoutMs }: Tool,
  work: Promise<ToolResult>,
): Promise<ToolResult> {
  if (timeoutMs === null) return work;
  const { clock } = runner.owner;
  return new Promise((resolve, reject) => {
    const cancel = clock.schedule(clock.now() + timeoutMs, () =>
      reject(new Fault("tool_timeout", `${call.toolName} took longer than ${timeoutMs} ms`)),
    );
    work.then(resolve, reject).finally(cancel);
  });
}

function failure(text: string): ToolResult {
  return { output: { type: "text", text }, isError: true };
}

function stopsRun(error: unknown): boolean {
  return (
    error instanceof CancellationError ||
    error instanceof BudgetExhaustedError ||
    error instanceof MiddlewareTermination
  );
}
