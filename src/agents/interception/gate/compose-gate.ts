import {
  checkOptions,
  optionNames,
  type Guardrail,
  type HookRegistry,
  type Permissions,
  type ToolGate,
} from "../../../kernel/index.ts";
import type { GateLayer } from "./gate-layer.ts";
import { guardrailLayer } from "./guardrail-layer.ts";
import { hookLayer } from "./hook-layer.ts";
import { ownWordLayer, permissionLayer, rememberApproval } from "./permission-layer.ts";

export interface GateParts {
  readonly hooks?: HookRegistry;
  readonly guardrails?: readonly Guardrail[];
  readonly permissions?: Permissions;
}

const partNames = optionNames<GateParts>({
  hooks: true,
  guardrails: true,
  permissions: true,
});

/**
 * Composes the gate that all tool calls of an agent pass. The first part that denies or asks decides.
 *
 * - Before a call: hooks, the extensions of an `Agent`, guardrails, permissions.
 * - After a call: the extensions of an `Agent`, guardrails, hooks.
 *
 * F1: only configured parts are included; the result is `undefined` if there are none.
 */
export function composeGate(parts: GateParts): ToolGate | undefined {
  checkOptions("composeGate()", parts, partNames);
  return composeLayers(parts);
}

/** Like `composeGate`, with the layer of an agent's extensions. */
export function composeLayers(
  { hooks, guardrails = [], permissions }: GateParts,
  extended?: GateLayer,
): ToolGate | undefined {
  const watchers = hooks && hookLayer(hooks);
  const guarded = guardrailLayer(guardrails);
  const befores = present(watchers?.first, extended, guarded).flatMap(({ before }) => before ?? []);
  const afters = present(extended, guarded, watchers?.last).flatMap(({ after }) => after ?? []);
  if (befores.length === 0 && afters.length === 0 && permissions === undefined) return undefined;
  const last = permissions === undefined ? ownWordLayer : permissionLayer(permissions);
  if (last.before !== undefined) befores.push(last.before);
  return {
    before: async (call) => {
      for (const before of befores) {
        const verdict = await before(call);
        if (verdict !== undefined) return verdict;
      }
      return { decision: "allow" };
    },
    after: async (call, result) => {
      let given = result;
      for (const after of afters) given = await after(call, given);
      return given;
    },
    ...(permissions && {
      remember: (call, decision, rules) => rememberApproval(permissions, call, decision, rules),
    }),
  };
}

function present(...layers: readonly (GateLayer | undefined)[]): readonly GateLayer[] {
  return layers.filter((layer) => layer !== undefined);
}
