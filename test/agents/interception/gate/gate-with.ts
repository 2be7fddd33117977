import { ExtensionHost } from "../../../../src/agents/interception/extensions/extension-host.ts";
import { composeLayers } from "../../../../src/agents/interception/gate/compose-gate.ts";
import { extensionLayer } from "../../../../src/agents/interception/gate/extension-layer.ts";
import type { GateParts } from "../../../../src/entries/index.ts";
import {
  formatAgentId,
  type Extension,
  type ExtensionHandler,
  type ToolGate,
} from "../../../../src/kernel/index.ts";
import { FakeClock } from "../../../../src/testing/index.ts";

/** The handlers of one extension at the gate. */
export interface ToolHandlers {
  readonly name: string;
  readonly toolCall?: ExtensionHandler<"tool_call">;
  readonly toolResult?: ExtensionHandler<"tool_result">;
}

export interface ExtendedParts extends GateParts {
  readonly extensions?: readonly ToolHandlers[];
}

/** Composes the gate of an agent with these extensions, after their setup. */
export async function gateWith({ extensions = [], ...parts }: ExtendedParts): Promise<ToolGate | undefined> {
  const host = new ExtensionHost(
    extensions.map(extensionOf),
    () => ({ id: formatAgentId({ name: "scout" }), name: "scout", models: {} }),
    () => undefined,
  );
  await host.ready(() => new FakeClock());
  return composeLayers(parts, extensionLayer(host));
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
