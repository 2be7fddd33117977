import {
  describeKind,
  Fault,
  isToolOutput,
  readProperty,
  withFixedPlace,
  type FunctionContext,
  type FunctionMiddleware,
  type JsonObject,
  type Tool,
  type ToolResult,
  type UpdateFilter,
} from "../../kernel/index.ts";
import { BodyContext, insideTask } from "../process/async-context.ts";
import { CallTimeout } from "../process/call-timeouts.ts";
import type { InFlightCall } from "../task/in-flight-calls.ts";
import { middlewareContext } from "../task/middleware-context.ts";
import { coerceInput } from "./call-arguments.ts";
import type { JudgedCall, ToolCallOptions } from "./gate-context.ts";
import { ToolCallContext } from "./tool-context.ts";

/**
 * Runs the body of a tool. While a tool that suspends waits, it has no call in flight, and a cancel ends its waits.
 * Throws or rejects if the body must not start.
 */
export function runBody(
  options: ToolCallOptions,
  tool: Tool,
  input: unknown,
  filters?: readonly UpdateFilter[],
): Promise<ToolResult> {
  const { open } = options;
  open.end();
  open.isPerformed = true;
  if (tool.suspends) {
    const context = new ToolCallContext(options, undefined, filters);
    open.nested = context;
    return tool.execute(input, context);
  }
  const begun = open.begin();
  return begun instanceof Promise
    ? begun.then((opened) => execute(options, tool, input, opened, filters))
    : execute(options, tool, input, begun, filters);
}

/** Executes a body whose call has begun. */
function execute(
  options: ToolCallOptions,
  tool: Tool,
  input: unknown,
  opened: InFlightCall,
  filters: readonly UpdateFilter[] | undefined,
): Promise<ToolResult> {
  const { open } = options;
  const context = new ToolCallContext(options, opened, filters);
  open.nested = context;
  const inside = new BodyContext(open.runner.inside, context, () =>
    open.submissionsOf(options.from.steps.idempotencyKey(open.address)),
  );
  const work = insideTask(inside, () => tool.execute(input, context));
  opened.body = context;
  if (tool.timeoutMs !== null) limitTime(options, tool.timeoutMs, context);
  return context.unlessAbandoned(work, inside);
}

/** Runs the body of a tool inside the middleware of its pipeline. */
export async function runAround(
  around: FunctionMiddleware,
  options: ToolCallOptions,
  { tool, input: { sent, parsed } }: JudgedCall,
): Promise<ToolResult> {
  const { open, call, from } = options;
  const raw = coerceInput(tool, sent) as JsonObject;
  const context = withFixedPlace<FunctionContext>({
    ...middlewareContext(open),
    functionName: tool.name,
    tool,
    callId: call.callId,
    idempotencyKey: from.steps.idempotencyKey(open.address),
    arguments: raw,
    filters: [],
  });
  let own: ToolResult | undefined;
  await around.process(context, async () => {
    const input = context.arguments === raw ? parsed : await tool.parse(context.arguments);
    try {
      own = await runBody(options, tool, input, context.filters);
      context.result = own;
    } finally {
      open.clearTimeout();
    }
    open.emitNestedEvents();
  });
  const { result } = context;
  if (result === undefined)
    throw new Fault(
      "middleware_misuse",
      `the middleware around ${tool.name} neither called next nor set context.result`,
    );
  if (result !== own && !isToolOutput(readProperty(result, "output")))
    throw new Fault(
      "middleware_misuse",
      `the middleware around ${tool.name} set an invalid context.result: expected { output, isError } with an output such as { type: "text", text }, not ${describeKind(result)}`,
    );
  return result;
}

/** Abandons a body that exceeds its timeout. A later result of the body is ignored. */
function limitTime({ open, call }: ToolCallOptions, timeoutMs: number, body: ToolCallContext): void {
  const { clock, callTimeouts } = open.runner.worker;
  const timer = new CallTimeout(clock.now() + timeoutMs, () =>
    body.abandon(new Fault("tool_timeout", `${call.toolName} took longer than ${timeoutMs} ms`)),
  );
  callTimeouts.add(timer);
  open.timeout = timer;
}
