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
import type { OpenStep } from "./open-step.ts";
import type { ScopeSteps } from "./scope-steps.ts";
import { Strand, type OpenCall } from "./strand.ts";
import { askForApproval } from "./tool-approval.ts";

export interface ToolCallOptions {
  readonly open: OpenStep;
  readonly call: ToolCall;
  readonly idempotencyKey: string;
  /** Of the code that calls the tool. */
  readonly steps: ScopeSteps;
  /** For a body that takes steps of its own, scoped under this call (J7). */
  readonly scoped: (strand: Strand) => RunContext & { takeTold(): readonly EventDraft[] };
}

/** One call of a tool. T2: what goes wrong inside it is a result the model can react to. */
export async function callTool(options: ToolCallOptions): Promise<ToolResult> {
  const { open, call } = options;
  const { clock } = open.runner.owner;
  const { callId, toolName } = call;
  const startedAt = clock.now();
  const result = await execute(options);
  const durationMs = clock.now() - startedAt;
  open.tell({ type: "tool_execution_end", data: { callId, toolName, result, durationMs } });
  return result;
}

async function execute(options: ToolCallOptions): Promise<ToolResult> {
  const { open, call, steps } = options;
  const { runner } = open;
  const { callId, toolName } = call;
  const tool = runner.findTool(toolName);
  if (tool === undefined) {
    const known = (runner.agent.tools ?? []).map(({ name }) => name).join(", ");
    return failure(`there is no tool ${toolName}; there are: ${known || "none"}`);
  }
  const { tools: allowed } = runner.task.record;
  if (allowed !== null && !allowed.includes(toolName)) {
    const reason = "not one of this task's tools";
    open.tell({ type: "permission_deny", data: { callId, toolName, by: "whitelist", reason } });
    return failure(
      `${toolName} may not be called by this task; it may call: ${allowed.join(", ") || "none"}`,
    );
  }
  try {
    const parsed = await tool.parse(call.input);
    if (!(await tool.needsApproval(parsed))) return await perform(options, tool, parsed);
    const decision = await askForApproval(steps, open.address, call);
    if (decision.decision === "denied") return failure(`[denied: ${decision.reason ?? "by a person"}]`);
    if (decision.decision === "skipped") return failure("[skipped by a person]");
    const edited = decision.input === undefined ? parsed : await tool.parse(decision.input);
    return await perform(options, tool, edited);
  } catch (error) {
    if (stopsRun(error)) throw error;
    return failure(Fault.from(error).message);
  }
}

/** A tool that suspends has no call open while it waits. */
async function perform(options: ToolCallOptions, tool: Tool, input: unknown): Promise<ToolResult> {
  if (tool.suspends) return body(options, tool, input, new Strand(options.open.strand));
  const call: OpenCall = await options.open.begin();
  const strand = new Strand(options.open.strand, call);
  return withTimeout(options, tool, strand, body(options, tool, input, strand));
}

async function body(
  { open, call, idempotencyKey, scoped }: ToolCallOptions,
  tool: Tool,
  input: unknown,
  strand: Strand,
): Promise<ToolResult> {
  const { runner } = open;
  const { meta, facts, log, taskId } = runner;
  const { callId } = call;
  const { runId } = log.lease;
  const progress = (update: JsonValue): void =>
    runner.owner.store.events.putDelta(log.lease, {
      type: "tool_execution_update",
      runId,
      taskId,
      callId,
      update,
    });
  const ctx = scoped(strand);
  const { signal } = strand;
  const result = await tool.execute(input, { meta, facts, signal, idempotencyKey, callId, progress, ctx });
  for (const draft of ctx.takeTold()) open.tell(draft);
  return result;
}

/** A body that takes too long is told to stop, and never answered again. */
function withTimeout(
  { open, call }: ToolCallOptions,
  { timeoutMs }: Tool,
  strand: Strand,
  work: Promise<ToolResult>,
): Promise<ToolResult> {
  if (timeoutMs === null) return work;
  const { clock } = open.runner.owner;
  return new Promise((resolve, reject) => {
    const cancel = clock.schedule(clock.now() + timeoutMs, () => {
      const late = `${call.toolName} took longer than ${timeoutMs} ms`;
      reject(new Fault("tool_timeout", late));
      strand.giveUp(late);
    });
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
