import { ExtensionHost } from "../../../../src/agents/interception/extensions/extension-host.ts";
import { toolPipeline, type GateParts } from "../../../../src/agents/interception/gate/tool-pipeline.ts";
import {
  formatAgentId,
  type Extension,
  type ExtensionHandler,
  type GatedCall,
  type ToolPipeline,
  type ToolResult,
} from "../../../../src/kernel/index.ts";
import { decideAfter, decideBefore } from "../../../../src/runtime/tool/call-entries.ts";
import { FakeClock } from "../../../../src/testing/index.ts";

type Decided = Awaited<ReturnType<typeof decideBefore>>;

/** Asks the checks before a tool call in the same way as the runtime. */
export async function before(pipeline: ToolPipeline | undefined, call: GatedCall): Promise<Decided> {
  return decideBefore(pipeline?.before ?? [], call);
}

/** Asks the checks after a tool call in the same way as the runtime. */
export async function after(
  pipeline: ToolPipeline | undefined,
  call: GatedCall,
  result: ToolResult,
): Promise<ToolResult> {
  return decideAfter(pipeline?.after ?? [], call, result);
}

/** The handlers of one extension before and after tool calls. */
export interface ToolHandlers {
  readonly name: string;
  readonly toolCall?: ExtensionHandler<"tool_call">;
  readonly toolResult?: ExtensionHandler<"tool_result">;
}

export interface ExtendedParts extends GateParts {
  readonly extensions?: readonly ToolHandlers[];
}

/** Composes the pipeline of an agent with these extensions, after their setup. */
export async function gateWith({
  extensions = [],
  ...parts
}: ExtendedParts): Promise<ToolPipeline | undefined> {
  const host = new ExtensionHost(
    extensions.map(extensionOf),
    () => ({ id: formatAgentId({ name: "scout" }), name: "scout", models: {} }),
    () => undefined,
  );
  await host.ready(() => new FakeClock());
  return toolPipeline({ ...parts, extensions: host });
}

function extensionOf({ name, toolCall, toolResult }: ToolHandlers): Extension {
  return {
    name,
    setup(api) {
      if (toolCall !== undefined) api.on("tool_call", toolCall);
      if (toolResult !== undefined) api.on("tool_result", toolResult);
    },
  };
}
