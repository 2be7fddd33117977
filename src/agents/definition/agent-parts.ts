import {
  Fault,
  type Architecture,
  type CallPath,
  type Clock,
  type Guardrail,
  type HostedAgent,
  type Model,
  type Tool,
} from "../../kernel/index.ts";
import { summaryRole } from "../context/compaction/summary-role.ts";
import { isConfigured, type AgentSettings } from "./agent-settings.ts";
import { architectureNames, createArchitecture } from "../architectures/registry.ts";
import { bothObservers } from "../interception/extensions/event-delivery.ts";
import type { ExtensionHost } from "../interception/extensions/extension-host.ts";
import { deferredArchitecture } from "../interception/extensions/extended-parts.ts";
import type { Registrations } from "../interception/extensions/registrations.ts";
import { toolPipeline } from "../interception/gate/tool-pipeline.ts";
import { withGuardrailModels } from "../interception/guardrails/guarded-run.ts";
import { readLayer, type Layer, type LevelMiddleware } from "../interception/middleware/layer.ts";
import type { MiddlewarePipeline } from "../interception/middleware/pipeline.ts";
import { tracing } from "../interception/middleware/tracing.ts";
import { checkArchitecture } from "../base/part-check.ts";
import { requireTurnControl } from "../interception/turns/turn-control.ts";

/**
 * Returns the architecture of an agent. `registered` contains the architectures of its extensions, after their
 * setup.
 */
export function architectureOf(
  options: AgentSettings,
  registered?: ReadonlyMap<string, () => Architecture>,
): Architecture {
  const { architecture = "react", extensions } = options;
  if (typeof architecture === "string" && !architectureNames().includes(architecture)) {
    const create = registered?.get(architecture);
    if (create !== undefined) return fitting(create(), options);
    if (extensions.length > 0) return deferredArchitecture(architecture);
  }
  const created = typeof architecture === "string" ? createArchitecture(architecture) : architecture;
  return fitting(created, options);
}

/**
 * Checks an architecture and returns it. Throws for a value without the methods of an architecture, and for options
 * that the architecture would ignore.
 */
function fitting(created: Architecture, options: AgentSettings): Architecture {
  const architecture = checkArchitecture(created, `architecture of agent ${options.name}`);
  if (architecture.hasOwnCalls === false) refusePolicyOfCalls(architecture, options);
  return requireTurnControl(architecture, options);
}

/** Options that apply only to model calls and tool calls of the agent itself. */
const policyOfCalls = [
  "permissions",
  "toolHooks",
  "repairToolCall",
  "prepareStep",
  "stopWhen",
  "maxToolCallsPerTurn",
  "maxParallelToolCalls",
] as const;

export type PolicyOfCalls = (typeof policyOfCalls)[number];

/**
 * Throws for policy that would have no effect, because other agents or a person do the work of the architecture.
 * Middleware for model calls is accepted if the agent has a model, which judges or converts answers.
 */
function refusePolicyOfCalls(architecture: Architecture, given: AgentSettings): void {
  const lost = policyOfCalls.find((option) => isConfigured(given, option));
  if (lost !== undefined) throw withoutEffect(lost, architecture, given);
  const hasModel = Object.keys(modelsOf(architecture, given)).length > 0;
  for (const [index, entry] of [given.middleware].flat().entries()) {
    const layer = readLayer(entry, index);
    if (layer.agent !== undefined || (layer.chat ?? layer.function) === undefined) continue;
    if (layer.chat === undefined || !hasModel)
      throw withoutEffect(`middleware ${layer.name ?? index + 1}`, architecture, given);
  }
  for (const guardrail of given.guardrails)
    if (checksCallsOnly(guardrail)) throw withoutEffect(`guardrail ${guardrail.name}`, architecture, given);
}

function checksCallsOnly(guardrail: Guardrail): boolean {
  const has = (stage: keyof Guardrail): boolean => guardrail[stage] !== undefined;
  return (has("beforeCall") || has("afterCall")) && !has("onInput") && !has("onOutput");
}

function withoutEffect(part: string, architecture: Architecture, { name }: AgentSettings): Fault {
  const steps = [...new Set(Object.values(architecture.declaredWorkers()).map(({ id }) => id))];
  const fix = steps.length === 0 ? "omit it" : `set it on the steps: ${steps.join(", ")}`;
  return new Fault(
    "invalid_argument",
    `invalid ${part} of agent ${name}: its architecture ${architecture.name} calls no model and no tool itself, so that it would have no effect; ${fix}`,
  );
}

export function subAgentsOf(
  architecture: Architecture,
  more: readonly HostedAgent[],
): readonly HostedAgent[] {
  return [...new Set([...Object.values(architecture.declaredWorkers()), ...more])];
}

export function modelsOf(
  { name: architecture, requiresModel = true }: Architecture,
  { name, model, models = {}, compaction, guardrails }: AgentSettings,
): Readonly<Record<string, Model>> {
  if (model === undefined && models["main"] === undefined && requiresModel) {
    throw new Fault(
      "invalid_argument",
      `agent ${name} has no model, but its architecture ${architecture} requires one; set the option \`model\``,
    );
  }
  const main = model ?? models["main"];
  const own = { ...(main && compaction && { [summaryRole]: main }), ...models, ...(main && { main }) };
  return withGuardrailModels(own, guardrails);
}

/**
 * Returns the agent's middleware. If the option `telemetry` is set, it adds `tracing` as the outermost middleware,
 * unless the agent has `tracing` already.
 */
export function middlewareOf(
  { telemetry, middleware }: AgentSettings,
  clock: Clock,
): readonly (Layer | LevelMiddleware)[] {
  if (telemetry === null || middleware.some((layer) => layer.name === "tracing")) return middleware;
  return [tracing({ telemetry, clock }), ...middleware];
}

/** F1: returns the pipelines of the agent's calls and its observer. `undefined` if neither is configured. */
export function callPathOf(
  middleware: MiddlewarePipeline,
  { guardrails, permissions, toolHooks, hooks, repairToolCall }: AgentSettings,
  extensions?: ExtensionHost,
): CallPath | undefined {
  const { chat, function: around } = middleware;
  const tool = toolPipeline({
    repair: repairToolCall,
    hooks: toolHooks,
    extensions,
    guardrails,
    permissions,
    around,
  });
  const observer =
    hooks && extensions ? bothObservers(hooks, extensions.observer) : (hooks ?? extensions?.observer);
  const path: CallPath = {
    ...(chat && { model: { around: chat } }),
    ...(tool && { tool }),
    ...(observer && { observer }),
  };
  return Object.keys(path).length === 0 ? undefined : Object.freeze(path);
}

/**
 * Returns the settings of an agent together with the parts that its extensions registered. If names are equal, the
 * agent's own part takes precedence.
 */
export function extendedSettings(settings: AgentSettings, registered: Registrations): AgentSettings {
  const own = new Set(settings.guardrails.map(({ name }) => name));
  const added = [...registered.all("guardrail").values()].filter(({ name }) => !own.has(name));
  return {
    ...settings,
    guardrails: [...settings.guardrails, ...added],
    ephemeral: [...settings.ephemeral, ...registered.ephemeral],
    memory: settings.memory ?? registered.memory ?? null,
  };
}

/**
 * Throws if two tools have the same name. Tools that are added later are not checked; the first one with a name is
 * used (`ToolSpecs`).
 */
export function refuseDuplicateTools(agent: string, tools: readonly Tool[]): void {
  const names = new Set<string>();
  for (const { name } of tools) {
    if (names.has(name))
      throw new Fault("invalid_argument", `agent ${agent} has two tools named ${name}; rename one of them`);
    names.add(name);
  }
}
