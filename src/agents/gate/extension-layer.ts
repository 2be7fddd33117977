import {
  eventDraft,
  Fault,
  stopsTask,
  type ExtensionEvent,
  type ExtensionResult,
  type GatedCall,
  type ToolResult,
} from "../../kernel/index.ts";
import type { GateLayer } from "./gate-layer.ts";

type Answer<Type extends "tool_call" | "tool_result"> =
  | ExtensionResult<Type>
  | Promise<ExtensionResult<Type>>;

/** The handlers of one extension for the events `tool_call` and `tool_result`. */
export interface ToolExtension {
  readonly name: string;
  /** Called before a tool call; may block it. */
  toolCall?(event: ExtensionEvent<"tool_call">, gated: GatedCall): Answer<"tool_call">;
  /** Called after a tool call; may change the result. Each extension sees what the one before left. */
  toolResult?(event: ExtensionEvent<"tool_result">, gated: GatedCall): Answer<"tool_result">;
}

/** S4: an extension that throws is recorded and has no effect on the call. */
export function extensionLayer(extensions: readonly ToolExtension[]): GateLayer {
  const layer: GateLayer = {};
  if (extensions.some((each) => each.toolCall !== undefined)) {
    layer.before = async (gated) => {
      for (const extension of extensions) {
        const answer = await attempt(gated, extension, "tool_call", async () =>
          extension.toolCall?.(gated.call, gated),
        );
        if (answer?.block === true)
          return { decision: "deny", by: `extension ${extension.name}`, reason: answer.reason };
      }
      return undefined;
    };
  }
  if (extensions.some((each) => each.toolResult !== undefined)) {
    layer.after = async (gated, result) => {
      let patched = result;
      for (const extension of extensions) {
        const patch = await attempt(gated, extension, "tool_result", async () =>
          extension.toolResult?.({ call: gated.call, result: patched }, gated),
        );
        if (patch) patched = applied(patched, patch);
      }
      return patched;
    };
  }
  return layer;
}

async function attempt<Value>(
  { emitEvent: tell }: GatedCall,
  { name }: ToolExtension,
  event: string,
  ask: () => Promise<Value>,
): Promise<Value | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (stopsTask(error)) throw error;
    tell(eventDraft("extension_error", { extension: name, event, failure: Fault.from(error).toJSON() }));
    return undefined;
  }
}

function applied(
  result: ToolResult,
  { output, isError, terminate }: Exclude<ExtensionResult<"tool_result">, undefined | void>,
): ToolResult {
  return {
    ...result,
    ...(output !== undefined && { output }),
    ...(isError !== undefined && { isError }),
    ...(terminate !== undefined && { terminate }),
  };
}
