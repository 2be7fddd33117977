import {
  modelFor,
  type Architecture,
  type ClientTool,
  type HostedAgent,
  type Model,
  type SchemaCheck,
  type StopCondition,
  type Tool,
} from "../../kernel/index.ts";
import type { ToolSpecs } from "../base/tool-specs.ts";
import {
  compactionPlan,
  type BeforeCompact,
  type CompactionPlan,
} from "../context/compaction/compaction-plan.ts";
import type { ExtensionHost } from "../interception/extensions/extension-host.ts";
import type { MiddlewarePipeline } from "../interception/middleware/pipeline.ts";
import { anyOf, checkRoles } from "../interception/turns/turn-control.ts";
import type { AgentSettings } from "./agent-settings.ts";

/** The parts of a plan that the agent creates from its settings. */
export interface PlanParts {
  readonly agent: HostedAgent & { readonly models: Readonly<Record<string, Model>> };
  readonly architecture: Architecture;
  readonly pipeline: MiddlewarePipeline;
  readonly toolSpecs: ToolSpecs;
  /** The extensions of the agent. `undefined` if it has none. */
  readonly extensions: ExtensionHost | undefined;
  readonly check: SchemaCheck;
  /** Creates a tool that the caller of a run brings along. */
  readonly clientTool: (spec: ClientTool) => Tool;
}

/**
 * The plan of an agent: its settings, and the parts that were created from them. Every invocation receives the same
 * plan, which is frozen. If extensions register parts, the agent gets a new plan before its first invocation.
 */
export interface AgentPlan
  extends
    PlanParts,
    Omit<AgentSettings, keyof PlanParts | "model" | "models" | "middleware" | "compaction" | "stopWhen"> {
  /** How long conversations are shortened. `null` if they are not shortened. */
  readonly compaction: CompactionPlan | null;
  readonly stopWhen: StopCondition | null;
}

export function agentPlan(settings: AgentSettings, parts: PlanParts): AgentPlan {
  const { name, prepareStep, stopWhen } = settings;
  const { agent, extensions: host } = parts;
  const beforeCompact: BeforeCompact | null =
    host === undefined ? null : (event, ctx, problemOf) => host.beforeCompact(event, ctx, problemOf);
  // Without a model there is nothing to compact for, and no summary.
  const compaction =
    modelFor(agent, "main") === undefined ? null : compactionPlan(name, settings.compaction, beforeCompact);
  return Object.freeze({
    ...settings,
    ...parts,
    compaction,
    prepareStep: prepareStep && checkRoles(name, prepareStep, ["main", ...Object.keys(agent.models)]),
    stopWhen: stopWhen && anyOf(stopWhen),
  });
}
