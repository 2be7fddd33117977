import { MiddlewareTermination, type Guardrail } from "../../../kernel/index.ts";
import { hear, type Objection } from "../guardrails/guardrail-panel.ts";
import { withheldResult, withWarnings } from "../guardrails/judged-result.ts";
import type { GateLayer } from "./gate-layer.ts";

/** Applies guardrails at the stages `tool_call` and `tool_result`. */
export function guardrailLayer(guardrails: readonly Guardrail[]): GateLayer {
  const layer: GateLayer = {};
  const before = guardrails.filter((each) => each.beforeCall !== undefined);
  const after = guardrails.filter((each) => each.afterCall !== undefined);
  if (before.length > 0) {
    layer.before = async (gated) => {
      const { call, emitEvent: tell } = gated;
      const { stop } = await hear(before, {
        stage: "tool_call",
        callId: call.callId,
        ask: (guardrail) => guardrail.beforeCall?.(call, gated),
        tell,
      });
      if (stop === undefined) return undefined;
      if (stop.decision === "halt") throw halted(stop);
      return { decision: "deny", by: `guardrail ${stop.guardrail}`, reason: stop.reason };
    };
  }
  if (after.length > 0) {
    layer.after = async (gated, result) => {
      const { call, emitEvent: tell } = gated;
      const { stop, warnings } = await hear(after, {
        stage: "tool_result",
        callId: call.callId,
        ask: (guardrail) => guardrail.afterCall?.(call, result, gated),
        tell,
      });
      if (stop === undefined) return withWarnings(result, warnings);
      if (stop.decision === "halt") throw halted(stop);
      return withheldResult(stop);
    };
  }
  return layer;
}

function halted({ guardrail, reason }: Objection): MiddlewareTermination {
  return new MiddlewareTermination(reason, { by: guardrail });
}
