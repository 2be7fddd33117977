import {
  Fault,
  type CallPath,
  type FunctionContext,
  type JsonObject,
  type JsonValue,
  type Tool,
  type ToolResult,
  type UpdateFilter,
} from "../../kernel/index.ts";
import { BodyContext, insideTask } from "../process/async-context.ts";
import { CallTimeout } from "../process/call-timeouts.ts";
import type { InFlightCall } from "../task/in-flight-calls.ts";
import { middlewareContext } from "../task/middleware-context.ts";
import type { GatedCallOptions } from "./gate-context.ts";
import { ToolCallContext } from "./tool-context.ts";

/** A tool call that is executed. */
export interface ToolCallOptions extends GatedCallOptions {
  /** Additional tools, which are found before the agent's own. */
  readonly extra: readonly Tool[] | undefined;
}

/** F1: executes the tool through its middleware, if there is any. */
export function performTool(
  options: ToolCallOptions,
  tool: Tool,
  raw: JsonValue,
  input: unknown,
): Promise<ToolResult> {
  const layers = options.open.runner.agent.callPath?.function;
  return layers === undefined ? run(options, tool, input) : performThrough(layers, options, tool, raw, input);
}

async function performThrough(
  layers: NonNullable<CallPath["function"]>,
  options: ToolCallOptions,
  tool: Tool,
  raw: JsonValue,
  input: unknown,
): Promise<ToolResult> {
  const { open, call, from } = options;
  const idempotencyKey = from.steps.idempotencyKey(open.address);
  const context: FunctionContext = {
    ...middlewareContext(open),
    functionName: tool.name,
    tool,
    callId: call.callId,
    idempotencyKey,
    arguments: raw as JsonObject,
    filters: [],
  };
  await layers.process(context, async () => {
    const changed = context.arguments !== raw;
    const parsed = changed ? await tool.parse(context.arguments) : input;
    try {
      context.result = await run(options, tool, parsed, context.filters);
    } finally {
      open.clearTimeout();
    }
    open.emitNestedEvents();
  });
  if (context.result !== undefined) return context.result;
  throw new Fault(
    "middleware_misuse",
    `the middleware around ${tool.name} neither called next nor set context.result`,
  );
}

/** Runs the body. A tool that suspends has no call in flight while it waits. */
function run(
  options: ToolCallOptions,
  tool: Tool,
  input: unknown,
  filters?: readonly UpdateFilter[],
): Promise<ToolResult> {
  const { open } = options;
  open.end();
  open.isPerformed = true;
  if (tool.suspends) return runIn(options, tool, input, undefined, filters);
  const call = open.begin();
  return call instanceof Promise
    ? call.then((begun) => runIn(options, tool, input, begun, filters))
    : runIn(options, tool, input, call, filters);
}

function runIn(
  options: ToolCallOptions,
  tool: Tool,
  input: unknown,
  opened: InFlightCall | undefined,
  filters: readonly UpdateFilter[] | undefined,
): Promise<ToolResult> {
  const context = new ToolCallContext(options, opened, filters);
  options.open.nested = context;
  // `opened` is absent for a tool that suspends: it has no call in flight, and a cancel ends its waits.
  if (opened === undefined) return tool.execute(input, context);
  const inside = new BodyContext(options.open.runner.inside, context);
  const work = insideTask(inside, () => tool.execute(input, context));
  opened.body = context;
  if (tool.timeoutMs !== null) limitTime(options, tool.timeoutMs, context);
  return context.unlessAbandoned(work, inside);
}

/** Abandons a body that exceeds its timeout; its later result is ignored. */
function limitTime({ open, call }: ToolCallOptions, timeoutMs: number, body: ToolCallContext): void {
  const { clock, callTimeouts } = open.runner.worker;
  const timer = new CallTimeout(clock.now() + timeoutMs, () =>
    body.abandon(new Fault("tool_timeout", `${call.toolName} took longer than ${timeoutMs} ms`)),
  );
  callTimeouts.add(timer);
  open.timeout = timer;
}
