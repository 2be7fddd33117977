import { assertJson, type JsonValue, type ToolContext, type ToolResult } from "../../kernel/index.ts";
import { toolResult, type ToolReturn } from "./tool-result.ts";

/** Yields progress for those who watch, and returns the result. */
export type ToolProgress = AsyncGenerator<JsonValue, ToolReturn, void>;

export type ToolBody<Input> = (
  input: Input,
  context: ToolContext,
) => ToolReturn | Promise<ToolReturn> | ToolProgress;

/** Runs a body to its result. A generator is closed when the call is stopped, so that its `finally` runs. */
export function runBody<Input>(
  name: string,
  body: ToolBody<Input>,
  input: Input,
  context: ToolContext,
): Promise<ToolResult> {
  try {
    // By `call`: compiled for one agent's function, this would be compiled again for the next one's.
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

/** The call was stopped and nobody waits for its body: what its `finally` throws is told to nobody. */
function ignoreAfterStop(): void {}

function isProgress(value: unknown): value is ToolProgress {
  // Most bodies give a promise or a text; to find that a key is absent takes longer than to see that.
  if (typeof value !== "object" || value === null || value instanceof Promise) return false;
  return Symbol.asyncIterator in value && "next" in value;
}
