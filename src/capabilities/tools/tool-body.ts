import { assertJson, type JsonValue, type ToolContext, type ToolResult } from "../../kernel/index.ts";
import { toolResult, type ToolReturn } from "./tool-result.ts";

/** A tool body that is an async generator: it yields progress updates and returns the result. */
export type ToolProgress = AsyncGenerator<JsonValue, ToolReturn, void>;

/**
 * The function that executes a tool call. It returns the result, a promise of it, or a generator that yields progress.
 */
export type ToolBody<Input, Context = unknown> = (
  input: Input,
  context: ToolContext<Context>,
) => ToolReturn | Promise<ToolReturn> | ToolProgress;

/**
 * Runs a tool body to its result. When the call is cancelled, a generator is closed so that its `finally` blocks run.
 */
export function runBody<Input>(
  name: string,
  body: ToolBody<Input>,
  input: Input,
  context: ToolContext,
): Promise<ToolResult> {
  try {
    // Through `.call`, so that V8 does not specialise this call site to the first tool's body.
    const begun = body.call(undefined, input, context);
    const returned = isProgress(begun) ? drain(name, begun, context) : Promise.resolve(begun);
    return returned.then(toolResult);
  } catch (error) {
    return Promise.reject(error);
  }
}

async function drain(name: string, body: ToolProgress, context: ToolContext): Promise<ToolReturn> {
  const { signal } = context;
  const close = (): void => void body.return(undefined).catch(ignoreAfterStop);
  signal.addEventListener("abort", close, { once: true });
  try {
    for (;;) {
      const { done, value } = await body.next();
      if (done === true) return value;
      signal.throwIfAborted();
      assertJson(value, `the progress of tool ${name}`);
      context.progress(value);
    }
  } finally {
    signal.removeEventListener("abort", close);
    await body.return(undefined);
  }
}

/** Ignores errors of the `finally` blocks of a cancelled generator, because no caller waits for it any more. */
function ignoreAfterStop(): void {}

function isProgress(value: unknown): value is ToolProgress {
  // A type check is faster than looking up an absent key, and most bodies return a promise or a string.
  if (typeof value !== "object" || value === null || value instanceof Promise) return false;
  return Symbol.asyncIterator in value && "next" in value;
}
