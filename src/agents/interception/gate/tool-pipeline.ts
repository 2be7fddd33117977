import {
  type AfterCall,
  type BeforeCall,
  type CallVerdict,
  describeValue,
  eventDraft,
  Fault,
  type FunctionMiddleware,
  type GatedCall,
  type Guardrail,
  type HookRegistry,
  optionTable,
  type OptionKinds,
  type Permissions,
  readProperty,
  type RepairToolCall,
  stopsTask,
  type ToolPipeline,
} from "../../../kernel/index.ts";
import { gateKinds } from "../../base/part-check.ts";
import type { ExtensionHost } from "../extensions/extension-host.ts";
import { hear, type StoppingObjection } from "../guardrails/guardrail-panel.ts";
import { permissionEntry } from "./permission-entry.ts";

/** The parts of an agent that judge tool calls. */
export interface GateParts {
  readonly hooks?: HookRegistry;
  readonly guardrails?: readonly Guardrail[];
  readonly permissions?: Permissions;
}

const partTable = optionTable({
  hooks: gateKinds.toolHooks,
  guardrails: gateKinds.guardrails,
  permissions: gateKinds.permissions,
} satisfies OptionKinds<GateParts>);

/**
 * Combines the checks for tool calls of a custom agent, for `callPath: { tool }`. F1: the result is `undefined` if
 * there are no checks.
 */
export function composeGate(parts: GateParts): ToolPipeline | undefined {
  const { hooks, guardrails, permissions } = partTable.read("composeGate()", parts);
  return toolPipeline({ hooks, guardrails: guardrails ?? [], permissions });
}

/**
 * All parts of an agent that check its tool calls or run around them. A part that is not configured is absent or
 * `null`.
 */
export interface ToolParts {
  readonly repair?: RepairToolCall | null;
  readonly hooks?: HookRegistry | null | undefined;
  readonly extensions?: ExtensionHost | undefined;
  readonly guardrails?: readonly Guardrail[];
  readonly permissions?: Permissions | null | undefined;
  readonly around?: FunctionMiddleware | undefined;
}

/**
 * Combines the checks and middleware of an agent's tool calls. It defines their order, which
 * `docs/guides/middleware.md` documents. F1: only configured parts are included, and the result is `undefined` if
 * there are none.
 */
export function toolPipeline(parts: ToolParts): ToolPipeline | undefined {
  const { repair, hooks, extensions, guardrails = [], permissions, around } = parts;
  const before: readonly BeforeCall[] = [
    ...(hooks ? [preTool(hooks)] : []),
    ...(extensions ? toolCallEvent(extensions) : []),
    ...beforeCall(guardrails),
    ...(permissions ? [permissionEntry(permissions)] : []),
  ];
  const after: readonly AfterCall[] = [
    ...(extensions ? toolResultEvent(extensions) : []),
    ...afterCall(guardrails),
    ...(hooks ? [postTool(hooks)] : []),
  ];
  const pipeline: ToolPipeline = {
    ...(repair && { repair }),
    ...(before.length > 0 && { before }),
    ...(around && { around }),
    ...(after.length > 0 && { after }),
  };
  return Object.keys(pipeline).length === 0 ? undefined : Object.freeze(pipeline);
}

/** Creates the check for a hook before a call, which may deny the call. An error of the hook denies the call. */
function preTool(hooks: HookRegistry): BeforeCall {
  return {
    name: "toolHooks.preTool",
    decide: async (gated) => {
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
  };
}

/** Creates the check for a hook after a call, which observes the result. An error of the hook changes nothing. */
function postTool(hooks: HookRegistry): AfterCall {
  return {
    name: "toolHooks.postTool",
    decide: async (gated, result) => {
      try {
        await hooks.postTool(gated.call, result, gated.facts);
      } catch (error) {
        if (stopsTask(error)) throw error;
        tellErrors(gated, "post_tool", error);
      }
      return undefined;
    },
  };
}

/**
 * Returns the reason of a denial. Throws for any other value, because a hook that wants to deny a call must not be
 * ignored.
 */
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

/**
 * Creates the check that calls the handlers of the event `tool_call`. S4: a handler that throws, takes too long or
 * returns an invalid result denies the call. A child that shares the agent's prompt has no extensions.
 */
function toolCallEvent(host: ExtensionHost): readonly BeforeCall[] {
  const name = "extensions tool_call";
  const { denial } = host;
  if (denial !== undefined)
    return [{ name, decide: () => ({ decision: "deny", by: "extensions", reason: denial }) }];
  if (!host.has("tool_call")) return [];
  const decide: BeforeCall["decide"] = async (gated) => {
    if (gated.ctx.sharesPrompt) return undefined;
    const place = host.placeIn(() => gated.ctx, gated.emitEvent);
    const { answer, by } = await host.answer("tool_call", gated.call, place);
    return answer && { decision: "deny", by: `extension ${by}`, reason: answer.reason };
  };
  return [{ name, decide }];
}

/**
 * Creates the check that calls the handlers of the event `tool_result`, each of which may change the result. S4: a
 * handler that throws, takes too long or returns an invalid result withholds the result from the model.
 */
function toolResultEvent(host: ExtensionHost): readonly AfterCall[] {
  if (!host.has("tool_result")) return [];
  const decide: AfterCall["decide"] = async (gated, result) => {
    if (gated.ctx.sharesPrompt) return undefined;
    const place = host.placeIn(() => gated.ctx, gated.emitEvent);
    const { event } = await host.answer("tool_result", { call: gated.call, result }, place);
    if (event.result === result) return undefined;
    return { decision: event.result.terminate ? "terminate" : "answer", result: event.result };
  };
  return [{ name: "extensions tool_result", decide }];
}

/** Creates the check for guardrails of the stage `tool_call`. Their option `onError` decides about errors. */
function beforeCall(guardrails: readonly Guardrail[]): readonly BeforeCall[] {
  const asked = guardrails.filter((each) => each.beforeCall !== undefined);
  if (asked.length === 0) return [];
  const decide: BeforeCall["decide"] = async (gated) => {
    const { call, emitEvent: tell } = gated;
    const { stop } = await hear(asked, {
      stage: "tool_call",
      callId: call.callId,
      ask: (guardrail) => guardrail.beforeCall?.(call, gated),
      tell,
    });
    return stop && stopped(stop);
  };
  return [{ name: "guardrails beforeCall", decide }];
}

/** Creates the check for guardrails of the stage `tool_result`. Their option `onError` decides about errors. */
function afterCall(guardrails: readonly Guardrail[]): readonly AfterCall[] {
  const asked = guardrails.filter((each) => each.afterCall !== undefined);
  if (asked.length === 0) return [];
  const decide: AfterCall["decide"] = async (gated, result) => {
    const { call, emitEvent: tell } = gated;
    const { stop, warnings } = await hear(asked, {
      stage: "tool_result",
      callId: call.callId,
      ask: (guardrail) => guardrail.afterCall?.(call, result, gated),
      tell,
    });
    if (stop !== undefined) return stopped(stop);
    const objections = warnings.map(({ guardrail, reason }) => ({ by: `guardrail ${guardrail}`, reason }));
    return { decision: "warn", objections };
  };
  return [{ name: "guardrails afterCall", decide }];
}

function stopped({ decision, guardrail, reason }: StoppingObjection): CallVerdict {
  return decision === "halt"
    ? { decision, by: guardrail, reason }
    : { decision: "deny", by: `guardrail ${guardrail}`, reason };
}
