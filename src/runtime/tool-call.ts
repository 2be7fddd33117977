import {
  BudgetExhaustedError,
  CancellationError,
  Fault,
  MiddlewareTermination,
  type EventDraft,
  type FunctionContext,
  type GatedCall,
  type JsonObject,
  type JsonValue,
  type RunContext,
  type Tool,
  type ToolCall,
  type ToolGate,
  type ToolResult,
} from "../kernel/index.ts";
import { layerContext } from "./layer-context.ts";
import type { OpenStep } from "./open-step.ts";
import type { ScopeSteps } from "./scope-steps.ts";
import { Strand, type OpenCall } from "./strand.ts";
import { passGate } from "./gate-passage.ts";

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
    const gated = gatedCall(options, tool, await tool.needsApproval(parsed));
    const passed = await passGate({ steps, open, gated });
    if ("refusal" in passed) return failure(passed.refusal);
    const input = passed.input === undefined ? parsed : await tool.parse(passed.input);
    const result = await perform(options, tool, passed.input ?? call.input, input);
    return await reviewed(gated, runner.agent.callPath?.gate, result);
  } catch (error) {
    if (stopsRun(error)) throw error;
    return failure(Fault.from(error).message);
  }
}

function gatedCall({ open, call }: ToolCallOptions, tool: Tool, needsApproval: boolean): GatedCall {
  const { agentId, taskId, facts, settledCalls } = open.runner;
  const tell = (event: EventDraft): void => open.tell(event);
  return { call, tool, needsApproval, agentId, taskId, facts, history: settledCalls, tell };
}

/** What the model is given in place of the result. A gate that fails here lets nothing out. */
async function reviewed(
  gated: GatedCall,
  gate: ToolGate | undefined,
  result: ToolResult,
): Promise<ToolResult> {
  return gate === undefined ? result : gate.after(gated, result);
}

/** A tool that suspends has no call open while it waits. */
async function perform(
  options: ToolCallOptions,
  tool: Tool,
  raw: JsonValue,
  input: unknown,
): Promise<ToolResult> {
  const { open, call, idempotencyKey } = options;
  const layers = open.runner.agent.callPath?.function;
  if (layers === undefined) return execution(options, tool, input);
  const context: FunctionContext = {
    ...layerContext(open),
    functionName: tool.name,
    tool,
    callId: call.callId,
    idempotencyKey,
    arguments: raw as JsonObject,
  };
  await layers.process(context, async () => {
    const changed = context.arguments !== raw;
    context.result = await execution(options, tool, changed ? await tool.parse(context.arguments) : input);
  });
  if (context.result !== undefined) return context.result;
  throw new Fault(
    "middleware_misuse",
    `the middleware around ${tool.name} neither called next nor set context.result`,
  );
}

async function execution(options: ToolCallOptions, tool: Tool, input: unknown): Promise<ToolResult> {
  const { open } = options;
  if (tool.suspends) return body(options, tool, input, new Strand(open.strand));
  open.end();
  const call: OpenCall = await open.begin();
  const strand = new Strand(open.strand, call);
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
