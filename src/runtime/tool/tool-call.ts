import {
  afterPerforming,
  Fault,
  JsonDigest,
  MiddlewareTermination,
  sealJson,
  sealMadeJson,
  stepAt,
  stopsTask,
  type HostedAgent,
  type EventDraft,
  type JsonValue,
  type StepAddress,
  type Tool,
  type ToolCall,
  type ToolGate,
  type ToolResult,
  type ToolsOptions,
} from "../../kernel/index.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { stopAtOverrun } from "../task/budget-stop.ts";
import { coerceInput, parsedArguments } from "./call-arguments.ts";
import { repairedCall } from "./call-repair.ts";
import { withGateContext, type CallingScope, type JudgedCall, type Look } from "./gate-context.ts";
import { performTool, type ToolCallOptions } from "./tool-body.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import { needsApproval, passGate, wasAsked, withdrawAsked } from "./tool-gate.ts";
import { failedResult, findRefusal, pastLimit, unknownTool } from "./tool-refusal.ts";

export function findTool(
  { tools }: Pick<HostedAgent, "tools">,
  name: string,
  extra?: readonly Tool[],
): Tool | undefined {
  if (extra !== undefined) for (const tool of extra) if (tool.name === name) return tool;
  if (tools !== undefined) for (const tool of tools) if (tool.name === name) return tool;
  return undefined;
}

/** J2: the address of a tool call is `<scope>/<position>`. The scope is that of the model call whose reply contains the call. */
interface CallPlace {
  readonly scope: StepAddress;
  readonly position: number;
  /** Position from which calls are not executed. */
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

  /** The number of calls of a turn that are executed, if this call comes after them; its result then says so. */
  get exceededLimit(): number | undefined {
    const { position, limit } = this.#place;
    return position < limit ? undefined : limit;
  }

  get start(): EventDraft {
    const { callId, toolName, input } = this.call;
    return { type: "tool_execution_start", data: { callId, toolName, input } };
  }
}

/** Executes one tool call. T2: an error inside it is a result that the model can react to. */
export function callTool(open: ActiveStep, step: ToolStep): ToolResult | Promise<ToolResult> {
  const { call, from } = step;
  const options = { open, call, from, extra: step.options.extra };
  stopAtOverrun(open);
  const { exceededLimit } = step;
  if (exceededLimit !== undefined) return emitEnd(options, pastLimit(exceededLimit));
  const { only } = step.options;
  const repair = open.runner.agent.callPath?.repair;
  if (repair === undefined) return callFound(options, only);
  const tools = [...(options.extra ?? []), ...(open.runner.agent.tools ?? [])];
  const tool = findTool(open.runner.agent, call.toolName, options.extra);
  return repairedCall({ ...options, tool, tools }, repair).then((repaired) =>
    callFound({ ...options, call: repaired }, only),
  );
}

function callFound(
  options: ToolCallOptions,
  only: readonly string[] | undefined,
): ToolResult | Promise<ToolResult> {
  const { open, call } = options;
  const tool = findTool(open.runner.agent, call.toolName, options.extra);
  const refusal = tool === undefined ? unknownTool(options) : findRefusal(options, tool, only);
  if (tool !== undefined && refusal === undefined) return execute(options, tool);
  const result = refusal ?? nothing;
  return wasAsked(open)
    ? withdrawAsked(options).then(() => emitEnd(options, result))
    : emitEnd(options, result);
}

const nothing: ToolResult = failedResult("");

function emitEnd({ open, call }: ToolCallOptions, result: ToolResult): ToolResult {
  const { callId, toolName } = call;
  const durationMs = open.durationSince(open.startedAt);
  const status = open.isDenied ? "denied" : result.isError ? "error" : "ok";
  open.emit({ type: "tool_execution_end", data: { callId, toolName, result, durationMs, status } });
  return result;
}

function execute(options: ToolCallOptions, tool: Tool): ToolResult | Promise<ToolResult> {
  const { open, call } = options;
  const { callPath } = open.runner.agent;
  const gate = callPath?.gate;
  let parsing: unknown;
  let asks: boolean | Promise<boolean>;
  try {
    parsing = tool.parse(call.input);
    asks =
      parsing instanceof Promise
        ? parsing.then((parsed) => needsApproval(gate, tool, parsed))
        : needsApproval(gate, tool, parsing);
  } catch (error) {
    return executeGated(options, tool, Promise.reject(error), false);
  }
  if (asks !== false || gate !== undefined || callPath?.function !== undefined || wasAsked(open))
    return executeGated(options, tool, parsing, asks);
  return performed(options, tool, call.input, parsing, emitEnd);
}

/** Executes a call that a gate or the tool itself may deny or hold for approval. */
async function executeGated(
  options: ToolCallOptions,
  tool: Tool,
  parsing: unknown,
  asks: boolean | Promise<boolean>,
): Promise<ToolResult> {
  const { open, call } = options;
  const { agent } = open.runner;
  const gate = agent.callPath?.gate;
  let isJudged = false;
  let judged: JudgedCall = { tool, needsApproval: false, input: parsedArguments(call.input, call.input) };
  let result: ToolResult;
  try {
    try {
      // Checked first, so that invalid arguments are reported once.
      const isAsking = await asks;
      judged = { tool, needsApproval: isAsking, input: parsedArguments(call.input, await parsing) };
      if (isAsking || gate !== undefined || wasAsked(open)) {
        isJudged = true;
        const currentTool = (): Tool | undefined => findTool(agent, call.toolName, options.extra);
        const passed = await passGate({ ...options, ...judged, currentTool });
        if ("refusal" in passed) {
          open.isDenied = true;
          return emitEnd(options, failedResult(passed.refusal));
        }
        judged = passed;
      }
      const { sent, parsed } = judged.input;
      result = await performed(options, judged.tool, coerceInput(judged.tool, sent), parsed, asIs);
    } catch (error) {
      result = failed(options, error);
      if (!isJudged && wasAsked(open)) await withdrawAsked(options);
    }
    if (gate !== undefined)
      result = await reviewed(options, { ...judged, stage: "after", round: open.address }, gate, result);
  } catch (error) {
    throw withheld(options, error);
  }
  return emitEnd(options, result);
}

/** Converts the outcome of the body to a result. T2: also if it failed. */
function performed(
  options: ToolCallOptions,
  tool: Tool,
  raw: JsonValue,
  input: unknown,
  handOn: (options: ToolCallOptions, result: ToolResult) => ToolResult,
): Promise<ToolResult> {
  let work: Promise<ToolResult>;
  try {
    work = performTool(options, tool, raw, input);
  } catch (error) {
    work = Promise.reject(error);
  }
  return work.then(
    (result) => handOn(options, sealed(options, tool, result)),
    (error: unknown) => handOn(options, failed(options, error)),
  );
}

function asIs(_options: ToolCallOptions, result: ToolResult): ToolResult {
  return result;
}

/** J1, J10: seals the result as JSON. */
function sealed(options: ToolCallOptions, tool: Tool, result: ToolResult): ToolResult {
  const { open } = options;
  open.clearTimeout();
  open.emitNestedEvents();
  try {
    if (isText(result)) sealMadeJson(result, tool.name);
    else sealJson(result, `the result of tool ${tool.name}`);
    assertSize(open, tool, result);
    return result;
  } catch (error) {
    return failed(options, error);
  }
}

/**
 * The result for a failed call. It throws errors that stop the task; a stop after the body finished is marked as such.
 */
function failed(options: ToolCallOptions, error: unknown): ToolResult {
  options.open.clearTimeout();
  if (stopsTask(error)) throw withheld(options, error);
  const { message } = Fault.from(error);
  try {
    const { open, call } = options;
    open.runner.worker.sizes.assert(message, `the error of tool ${call.toolName}`);
    return failedResult(message);
  } catch (fault) {
    return failedResult(Fault.from(fault).message);
  }
}

/** Marks a stop that came after the body had finished. */
function withheld({ open, call }: ToolCallOptions, error: unknown): unknown {
  return open.isPerformed && error instanceof MiddlewareTermination
    ? afterPerforming(error, call.callId)
    : error;
}

/** The size of a text result is that of its text. */
function assertSize({ runner }: ActiveStep, { name }: Tool, result: ToolResult): void {
  const { output } = result;
  const isPlain = isText(result) && output.type === "text";
  const value = isPlain ? output.text : (result as unknown as JsonValue);
  runner.worker.sizes.assert(value, `the result of tool ${name}`);
}

/** Whether a result consists of a text only. A body may return anything. */
function isText(result: Partial<ToolResult>): boolean {
  return result.metadata === undefined && result.output?.type === "text";
}

/** The result after the gate. If the gate fails here, the result is withheld. */
async function reviewed(
  options: ToolCallOptions,
  look: Look,
  gate: ToolGate,
  result: ToolResult,
): Promise<ToolResult> {
  try {
    const checked = await withGateContext(options, look, (gated) => gate.after(gated, result));
    sealJson(checked, `what the gate made of the result of tool ${look.tool.name}`);
    assertSize(options.open, look.tool, checked);
    return checked;
  } catch (error) {
    if (stopsTask(error)) throw error;
    return failedResult(`[withheld: the gate failed: ${Fault.from(error).message}]`);
  }
}
