import { withWarnings, withheldResult } from "../guardrails/judged-result.ts";
import { type Objection, hear } from "../guardrails/guardrail-panel.ts";
import {
  Fault,
  type GatedCall,
  type Guardrail,
  type HookRegistry,
  MiddlewareTermination,
  type Permissions,
  type ToolGate,
  checkOptions,
  describeValue,
  eventDraft,
  optionNames,
  readProperty,
  stopsTask,
} from "../../../kernel/index.ts";
import type { GateLayer } from "./gate-layer.ts";
import { ownWordLayer, permissionLayer, rememberApproval } from "./permission-layer.ts";

/** Runs tool hooks first before a call, where they may deny it, and last after it, where they only observe. */
function hookLayer(hooks: HookRegistry): { readonly first: GateLayer; readonly last: GateLayer } {
  return {
    first: {
      before: async (gated) => {
        try {
          const verdict: unknown = await hooks.preTool(gated.call, gated.facts);
          return verdict === undefined
            ? undefined
            : { decision: "deny", by: "hook", reason: denialIn(verdict) };
        } catch (error) {
          if (stopsTask(error)) throw error;
          tellErrors(gated, "pre_tool", error);
          return { decision: "deny", by: "hook", reason: `a hook failed: ${Fault.from(error).message}` };
        }
      },
    },
    last: {
      after: async (gated, result) => {
        try {
          await hooks.postTool(gated.call, result, gated.facts);
        } catch (error) {
          if (stopsTask(error)) throw error;
          tellErrors(gated, "post_tool", error);
        }
        return result;
      },
    },
  };
}

/** The reason of a denial. Throws for any other result, because a hook that means to deny must not be ignored. */
function denialIn(verdict: unknown): string {
  const reason = readProperty(verdict, "deny");
  if (typeof reason === "string") return reason;
  throw new Fault(
    "invalid_argument",
    `invalid result ${describeValue(verdict)} of a hook before a tool call: expected { deny: "reason" }, or undefined for no opinion`,
  );
}

function tellErrors({ emitEvent: tell }: GatedCall, hook: string, error: unknown): void {
  const errors: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  for (const each of errors) tell(eventDraft("hook_error", { hook, failure: Fault.from(each).toJSON() }));
}

/** Applies guardrails at the stages `tool_call` and `tool_result`. */
function guardrailLayer(guardrails: readonly Guardrail[]): GateLayer {
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
