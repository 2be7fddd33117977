import {
  afterPerforming,
  Fault,
  JsonDigest,
  MiddlewareTermination,
  reasonToAsk,
  sealJson,
  sealMadeJson,
  stepAt,
  stopsTask,
  type AfterCall,
  type EventDraft,
  type JsonValue,
  type StepAddress,
  type Tool,
  type ToolCall,
  type ToolResult,
  type ToolsOptions,
} from "../../kernel/index.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { stopAtOverrun } from "../task/budget-stop.ts";
import { parsedArguments } from "./call-arguments.ts";
import { decideAfter } from "./call-entries.ts";
import { withGateContext, type CallingScope, type JudgedCall, type ToolCallOptions } from "./gate-context.ts";
import {
  callLimit,
  failedResult,
  findTool,
  narrowedTools,
  repairedCall,
  unknownTool,
} from "./received-call.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import { runAround, runBody } from "./tool-body.ts";
import { denied, passGate, wasAsked, withdrawAsked } from "./tool-gate.ts";

/** J2: the address of a tool call is `<scope>/<position>`. The scope is that of the model call whose reply contains the call. */
interface CallPlace {
  readonly scope: StepAddress;
  readonly position: number;
  /** Position from which on calls are not executed. */
  readonly limit: number;
}

/** A tool call as a step of its task. */
export class ToolStep implements StepIdentity {
  readonly kind = "tool";
  readonly address: StepAddress;
  readonly name: string;
  readonly digest: JsonDigest;
  readonly call: ToolCall;
  readonly from: CallingScope;
  readonly options: ToolsOptions;
  readonly #place: CallPlace;

  constructor(place: CallPlace, call: ToolCall, from: CallingScope, options: ToolsOptions) {
    this.#place = place;
    this.address = stepAt(place.scope, place.position);
    this.name = call.toolName;
    this.digest = new JsonDigest(call.input);
    this.call = call;
    this.from = from;
    this.options = options;
  }

  /** The maximum number of calls of a turn, if this call exceeds it. The result of the call then says so. */
  get exceededLimit(): number | undefined {
    const { position, limit } = this.#place;
    return position < limit ? undefined : limit;
  }

  get start(): EventDraft {
    const { callId, toolName, input } = this.call;
    return { type: "tool_execution_start", data: { callId, toolName, input } };
  }
}

/**
 * Executes one call with all checks and middleware around it. The order is described in
 * `docs/guides/middleware.md`: the call limit, the repair, the tools of the task, `before`, the person, `around`,
 * the body, `after`. F1: a phase that is not configured is skipped. T2: an error becomes a result to which the
 * model can react.
 */
export async function callTool(open: ActiveStep, step: ToolStep): Promise<ToolResult> {
  stopAtOverrun(open);
  const { from, exceededLimit } = step;
  const { extra, only } = step.options;
  const { agent } = open.runner;
  const pipeline = agent.callPath?.tool;
  let options: ToolCallOptions = { open, call: step.call, from, extra };
  if (exceededLimit !== undefined) return emitEnd(options, callLimit(exceededLimit));
  if (pipeline?.repair !== undefined)
    options = { ...options, call: await repairedCall(options, pipeline.repair) };
  const { call } = options;
  const tool = findTool(agent, call.toolName, extra);
  if (tool === undefined) return withdrawn(options, unknownTool(options));
  const narrowed = narrowedTools(options, tool, only);
  if (narrowed !== undefined) return withdrawn(options, denied(options, narrowed));
  let judged: JudgedCall | undefined;
  let result: ToolResult;
  try {
    try {
      const parsing = tool.parse(call.input);
      const parsed: unknown = parsing instanceof Promise ? await parsing : parsing;
      const need = tool.needsApproval(parsed);
      const needsApproval = need instanceof Promise ? await need : need;
      const isAsking =
        needsApproval || (pipeline?.before === undefined && reasonToAsk(tool, parsed) !== undefined);
      if (pipeline === undefined && !isAsking && !wasAsked(open))
        result = sealed(options, tool, await runBody(options, tool, parsed));
      else {
        judged = { tool, needsApproval, input: parsedArguments(call.input, parsed) };
        if (isAsking || pipeline?.before !== undefined || wasAsked(open)) {
          const passed = await passGate({ ...options, ...judged });
          if (passed.kind === "settled") return emitEnd(options, answered(options, tool, passed.result));
          judged = passed.judged;
        }
        const around = pipeline?.around;
        const done =
          around === undefined
            ? await runBody(options, judged.tool, judged.input.parsed)
            : await runAround(around, options, judged);
        result = sealed(options, judged.tool, done);
      }
    } catch (error) {
      result = failed(options, error);
      if (judged === undefined && wasAsked(open)) await withdrawAsked(options);
    }
    if (pipeline?.after !== undefined) {
      judged ??= { tool, needsApproval: false, input: parsedArguments(call.input, call.input) };
      result = await reviewed(options, judged, pipeline.after, result);
    }
  } catch (error) {
    throw withheld(options, error);
  }
  return emitEnd(options, result);
}

/**
 * Ends a call that must not be executed. If an earlier owner of the run asked a question about it, the question is
 * withdrawn.
 */
async function withdrawn(options: ToolCallOptions, result: ToolResult): Promise<ToolResult> {
  if (wasAsked(options.open)) await withdrawAsked(options);
  return emitEnd(options, result);
}

function emitEnd({ open, call }: ToolCallOptions, result: ToolResult): ToolResult {
  const { callId, toolName } = call;
  const durationMs = open.durationSince(open.startedAt);
  const status = open.isDenied ? "denied" : result.isError ? "error" : "ok";
  open.emit({ type: "tool_execution_end", data: { callId, toolName, result, durationMs, status } });
  return result;
}

/** J1, J10: seals the result as JSON. */
function sealed({ open }: ToolCallOptions, tool: Tool, result: ToolResult): ToolResult {
  open.clearTimeout();
  open.emitNestedEvents();
  if (isText(result)) sealMadeJson(result, tool.name);
  else sealJson(result, `the result of tool ${tool.name}`);
  assertSize(open, tool, result);
  return result;
}

/**
 * T2: returns the result of a call that is not executed. If the result cannot be stored, it becomes an error to
 * which the model can react.
 */
function answered(options: ToolCallOptions, tool: Tool, result: ToolResult): ToolResult {
  try {
    return sealed(options, tool, result);
  } catch (error) {
    return failed(options, error);
  }
}

/** Returns the result for a failed call. Errors that stop the task are thrown. */
function failed({ open, call }: ToolCallOptions, error: unknown): ToolResult {
  open.clearTimeout();
  if (stopsTask(error)) throw error;
  const { message } = Fault.from(error);
  try {
    open.runner.worker.sizes.assert(message, `the error of tool ${call.toolName}`);
    return failedResult(message);
  } catch (fault) {
    return failedResult(Fault.from(fault).message);
  }
}

/** Marks an error that stops the run as one that came after the body had finished. */
function withheld({ open, call }: ToolCallOptions, error: unknown): unknown {
  return open.isPerformed && error instanceof MiddlewareTermination
    ? afterPerforming(error, call.callId)
    : error;
}

/** Throws if a result is too large. For a text result, only the size of the text counts. */
function assertSize({ runner }: ActiveStep, { name }: Tool, result: ToolResult): void {
  const { output } = result;
  const isPlain = isText(result) && output.type === "text";
  const value = isPlain ? output.text : (result as unknown as JsonValue);
  runner.worker.sizes.assert(value, `the result of tool ${name}`);
}

/** Whether a result consists of only a text. It is checked at run time, because a body may return anything. */
function isText(result: Partial<ToolResult>): boolean {
  return result.metadata === undefined && result.output?.type === "text";
}

/** Returns the result with the changes of the `after` checks. A result that cannot be stored is withheld. */
async function reviewed(
  options: ToolCallOptions,
  judged: JudgedCall,
  entries: readonly AfterCall[],
  result: ToolResult,
): Promise<ToolResult> {
  const { open } = options;
  try {
    const checked = await withGateContext(options, { stage: "after", round: open.address }, (gatedCall) =>
      decideAfter(entries, gatedCall(judged), result),
    );
    sealJson(checked, `what the entries made of the result of tool ${judged.tool.name}`);
    assertSize(open, judged.tool, checked);
    return checked;
  } catch (error) {
    if (stopsTask(error)) throw error;
    return failedResult(`[withheld: ${Fault.from(error).message}]`);
  }
}
