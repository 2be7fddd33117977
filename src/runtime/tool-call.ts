import {
  BudgetExhaustedError,
  CancellationError,
  deepFreeze,
  Fault,
  MiddlewareTermination,
  sealJson,
  type ApprovalDecision,
  type EventDraft,
  type JsonValue,
  type RunContext,
  type Tool,
  type ToolCall,
  type ToolContext,
  type ToolResult,
} from "../kernel/index.ts";
import type { OpenStep } from "./open-step.ts";
import type { ScopeSteps } from "./scope-steps.ts";
import { Strand } from "./strand.ts";
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
  const { open, call, steps } = options;
  const { runner, address } = open;
  const { callId, toolName } = call;
  const { clock } = runner.owner;
  const startedAt = clock.now();
  const tool = runner.findTool(toolName);
  let result = findRefusal(options, tool);
  if (result === undefined && tool !== undefined) {
    try {
      let input = await tool.parse(call.input);
      const asks = tool.needsApproval(input);
      const decision =
        asks !== false && (await asks) ? await askForApproval(steps, address, call) : undefined;
      if (decision?.decision === "approved" && decision.input !== undefined)
        input = await tool.parse(decision.input);
      result = refusalBy(decision) ?? (await perform(options, tool, input));
      // J1, J10.
      sealJson(result, `the result of tool ${toolName}`);
    } catch (error) {
      if (stopsRun(error)) throw error;
      result = failure(Fault.from(error).message);
    }
  }
  result ??= failure(`there is no tool ${toolName}`);
  const durationMs = clock.now() - startedAt;
  open.tell({ type: "tool_execution_end", data: { callId, toolName, result, durationMs } });
  return result;
}

/** A tool that is not there, or not this task's. */
function findRefusal({ open, call }: ToolCallOptions, tool: Tool | undefined): ToolResult | undefined {
  const { runner } = open;
  const { callId, toolName } = call;
  if (tool === undefined) {
    const known = (runner.agent.tools ?? []).map(({ name }) => name).join(", ");
    return failure(`there is no tool ${toolName}; there are: ${known || "none"}`);
  }
  const { tools: allowed } = runner.task.record;
  if (allowed === null || allowed.includes(toolName)) return undefined;
  const reason = "not one of this task's tools";
  open.tell({ type: "permission_deny", data: { callId, toolName, by: "whitelist", reason } });
  return failure(`${toolName} may not be called by this task; it may call: ${allowed.join(", ") || "none"}`);
}

/** A tool that suspends has no call open while it waits. What most bodies do not ask for is made when one does. */
async function perform(options: ToolCallOptions, tool: Tool, input: unknown): Promise<ToolResult> {
  const { open, call, idempotencyKey, scoped } = options;
  const { meta, facts } = open.runner;
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

function refusalBy(decision: ApprovalDecision | undefined): ToolResult | undefined {
  if (decision?.decision === "denied") return failure(`[denied: ${decision.reason ?? "by a person"}]`);
  return decision?.decision === "skipped" ? failure("[skipped by a person]") : undefined;
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
