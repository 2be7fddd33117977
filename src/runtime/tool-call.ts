import {
  BudgetExhaustedError,
  CancellationError,
  deepFreeze,
  Fault,
  MiddlewareTermination,
  sealJson,
  type EventDraft,
  type FunctionContext,
  type GatedCall,
  type JsonObject,
  type JsonValue,
  type RunContext,
  type Tool,
  type ToolCall,
  type ToolContext,
  type ToolResult,
} from "../kernel/index.ts";
import { layerContext } from "./layer-context.ts";
import type { OpenStep } from "./open-step.ts";
import type { ScopeSteps } from "./scope-steps.ts";
import { Strand } from "./strand.ts";
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
  const { runner } = open;
  const { callId, toolName } = call;
  const { clock } = runner.owner;
  const startedAt = clock.now();
  const tool = runner.findTool(toolName);
  const result =
    tool === undefined ? notThere(options) : (findRefusal(options) ?? (await execute(options, tool)));
  const durationMs = clock.now() - startedAt;
  const status = open.denied ? "denied" : result.isError ? "error" : "ok";
  open.tell({ type: "tool_execution_end", data: { callId, toolName, result, durationMs, status } });
  return result;
}

function notThere({ open, call }: ToolCallOptions): ToolResult {
  const known = (open.runner.agent.tools ?? []).map(({ name }) => name).join(", ");
  return failure(`there is no tool ${call.toolName}; there are: ${known || "none"}`);
}

function findRefusal({ open, call: { callId, toolName } }: ToolCallOptions): ToolResult | undefined {
  const { tools: allowed } = open.runner.task.record;
  if (allowed === null || allowed.includes(toolName)) return undefined;
  const reason = "not one of this task's tools";
  open.tell({ type: "permission_deny", data: { callId, toolName, by: "whitelist", reason } });
  open.denied = true;
  return failure(`${toolName} may not be called by this task; it may call: ${allowed.join(", ") || "none"}`);
}

async function execute(options: ToolCallOptions, tool: Tool): Promise<ToolResult> {
  const { open, call } = options;
  try {
    const input = await tool.parse(call.input);
    const asks = tool.needsApproval(input);
    const needsApproval = asks !== false && (await asks);
    const isGated = needsApproval || open.runner.agent.callPath?.gate !== undefined;
    const result = await (isGated
      ? performGated(options, gatedCall(options, tool, needsApproval), input)
      : perform(options, tool, call.input, input));
    // J1, J10.
    sealJson(result, `the result of tool ${tool.name}`);
    return result;
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

/** What the model is given may be another result. A gate that fails there lets nothing out. */
async function performGated(
  options: ToolCallOptions,
  gated: GatedCall,
  parsed: unknown,
): Promise<ToolResult> {
  const { open, call, steps } = options;
  const { tool } = gated;
  const passed = await passGate({ steps, open, gated });
  if ("refusal" in passed) {
    open.denied = true;
    return failure(passed.refusal);
  }
  const input = passed.input === undefined ? parsed : await tool.parse(passed.input);
  const result = await perform(options, tool, passed.input ?? call.input, input);
  const gate = open.runner.agent.callPath?.gate;
  return gate === undefined ? result : gate.after(gated, result);
}

async function perform(
  options: ToolCallOptions,
  tool: Tool,
  raw: JsonValue,
  input: unknown,
): Promise<ToolResult> {
  const { open, call, idempotencyKey } = options;
  const layers = open.runner.agent.callPath?.function;
  if (layers === undefined) return run(options, tool, input);
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
    context.result = await run(options, tool, changed ? await tool.parse(context.arguments) : input);
  });
  if (context.result !== undefined) return context.result;
  throw new Fault(
    "middleware_misuse",
    `the middleware around ${tool.name} neither called next nor set context.result`,
  );
}

/** A tool that suspends has no call open while it waits. What most bodies do not ask for is made when one does. */
async function run(options: ToolCallOptions, tool: Tool, input: unknown): Promise<ToolResult> {
  const { open, call, idempotencyKey, scoped } = options;
  const { meta, facts } = open.runner;
  open.end();
  const strand = new Strand(open.strand, tool.suspends ? undefined : await open.begin());
  let ctx: ReturnType<ToolCallOptions["scoped"]> | undefined;
  const context: ToolContext = {
    meta,
    facts,
    idempotencyKey,
    callId: call.callId,
    progress: (update) => show(options, update),
    get signal() {
      return strand.signal;
    },
    get ctx() {
      return (ctx ??= scoped(strand));
    },
  };
  const work = tool.execute(input, context);
  const result = await (tool.timeoutMs === null ? work : inTime(options, tool.timeoutMs, strand, work));
  for (const draft of ctx?.takeTold() ?? []) open.tell(draft);
  return result;
}

function show({ open, call: { callId } }: ToolCallOptions, update: JsonValue): void {
  const { taskId, log, owner } = open.runner;
  const { runId } = log.lease;
  owner.store.events.putDelta(log.lease, { type: "tool_execution_update", runId, taskId, callId, update });
}

/** A body that takes too long is told to stop, and never answered again. */
function inTime(
  { open, call }: ToolCallOptions,
  timeoutMs: number,
  strand: Strand,
  work: Promise<ToolResult>,
): Promise<ToolResult> {
  const { clock } = open.runner.owner;
  return new Promise((resolve, reject) => {
    const cancel = clock.schedule(clock.now() + timeoutMs, () => {
      const late = `${call.toolName} took longer than ${timeoutMs} ms`;
      reject(new Fault("tool_timeout", late));
      strand.giveUp(late);
    });
    work.then(
      (result) => {
        cancel();
        return resolve(result);
      },
      (error: unknown) => {
        cancel();
        reject(error);
      },
    );
  });
}

function failure(text: string): ToolResult {
  return deepFreeze({ output: { type: "text", text }, isError: true });
}

function stopsRun(error: unknown): boolean {
  return (
    error instanceof CancellationError ||
    error instanceof BudgetExhaustedError ||
    error instanceof MiddlewareTermination
  );
}
