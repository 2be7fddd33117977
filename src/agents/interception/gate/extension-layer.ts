import type { ExtensionHost } from "../extensions/extension-host.ts";
import type { GateLayer } from "./gate-layer.ts";

/**
 * The extensions at the tool gate. S4: a handler of `tool_call` that throws, takes too long or returns an invalid result
 * denies the call; a handler of `tool_result` that does so leaves the result as it was. A child that shares the agent's
 * prompt has no extensions.
 */
export function extensionLayer(host: ExtensionHost): GateLayer {
  const layer: GateLayer = {};
  const { denial } = host;
  if (denial !== undefined)
    layer.before = async () => ({ decision: "deny", by: "extensions", reason: denial });
  else if (host.has("tool_call"))
    layer.before = async (gated) => {
      if (gated.ctx.sharesPrompt) return undefined;
      const place = host.placeIn(() => gated.ctx, gated.emitEvent);
      const { answer, by } = await host.answer("tool_call", gated.call, place);
      return answer && { decision: "deny", by: `extension ${by}`, reason: answer.reason };
    };
  if (host.has("tool_result"))
    layer.after = async (gated, result) => {
      if (gated.ctx.sharesPrompt) return result;
      const place = host.placeIn(() => gated.ctx, gated.emitEvent);
      const { event } = await host.answer("tool_result", { call: gated.call, result }, place);
      return event.result;
    };
  return layer;
}
