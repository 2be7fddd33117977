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
 * S4: an extension that throws is recorded, and the run continues. It fails closed: an extension that throws or returns
 * an invalid result for `tool_call` denies the call. One that throws for `tool_result` leaves the result as it was.
 */
export function extensionLayer(extensions: readonly ToolExtension[]): GateLayer {
  const layer: GateLayer = {};
  if (extensions.some((each) => each.toolCall !== undefined)) {
    layer.before = async (gated) => {
      for (const extension of extensions) {
        const reason = await reasonToBlock(gated, extension);
        if (reason !== undefined) return { decision: "deny", by: `extension ${extension.name}`, reason };
      }
      return undefined;
    };
  }
  if (extensions.some((each) => each.toolResult !== undefined)) {
    layer.after = async (gated, result) => {
      let patched = result;
      for (const extension of extensions) {
        patched = await patchedBy(gated, extension, patched);
      }
      return patched;
    };
  }
  return layer;
}

async function reasonToBlock(gated: GatedCall, extension: ToolExtension): Promise<string | undefined> {
  try {
    return blockIn(await extension.toolCall?.(gated.call, gated));
  } catch (error) {
    return `the extension failed: ${report(gated, extension, "tool_call", error).message}`;
  }
}

async function patchedBy(
  gated: GatedCall,
  extension: ToolExtension,
  result: ToolResult,
): Promise<ToolResult> {
  try {
    const patch = await extension.toolResult?.({ call: gated.call, result }, gated);
    return patch ? applied(result, patch) : result;
  } catch (error) {
    report(gated, extension, "tool_result", error);
    return result;
  }
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

/** Records the error of an extension. Throws an error that stops the task. */
function report({ emitEvent }: GatedCall, { name }: ToolExtension, event: string, error: unknown): Fault {
  if (stopsTask(error)) throw error;
  const fault = Fault.from(error);
  emitEvent(eventDraft("extension_error", { extension: name, event, failure: fault.toJSON() }));
  return fault;
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
