import {
  describeValue,
  eventDraft,
  Fault,
  readProperty,
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

/**
 * S4: an extension that throws is recorded and has no effect on the call. An extension that returns an invalid result
 * for `tool_call` blocks the call.
 */
export function extensionLayer(extensions: readonly ToolExtension[]): GateLayer {
  const layer: GateLayer = {};
  if (extensions.some((each) => each.toolCall !== undefined)) {
    layer.before = async (gated) => {
      for (const extension of extensions) {
        const answer = await attempt(gated, extension, "tool_call", async () =>
          extension.toolCall?.(gated.call, gated),
        );
        const reason = blockIn(answer);
        if (reason !== undefined) return { decision: "deny", by: `extension ${extension.name}`, reason };
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

/**
 * The reason for which an extension blocks a call; `undefined` if it does not. A result that cannot be read blocks,
 * because the extension may have meant to.
 */
function blockIn(answer: unknown): string | undefined {
  if (answer === undefined || answer === null) return undefined;
  const [block, reason] = [readProperty(answer, "block"), readProperty(answer, "reason")];
  if (block === false) return undefined;
  if (block === true && typeof reason === "string") return reason;
  return `the extension returned the invalid result ${describeValue(answer)}: expected { block: true, reason }, or undefined to let the call pass`;
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
