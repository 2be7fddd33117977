import { eventDraft, Fault, modelFor, type HostedAgent, type RunContext } from "../../kernel/index.ts";
import { react } from "../architectures/react.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import {
  compactionPlan,
  type BeforeCompact,
  type CompactionPlan,
} from "../context/compaction/compaction-plan.ts";
import { summaryRole } from "../context/compaction/summary-role.ts";
import { PromptWindow, type WindowChange } from "../context/compaction/prompt-window.ts";
import type { InvocationPlan } from "../invocation/invocation-plan.ts";
import { anyOf, checkRoles } from "../interception/turns/turn-control.ts";

type PlannedAgent = HostedAgent & Required<Pick<HostedAgent, "models">>;

type TurnLimits = Pick<InvocationPlan, "maxTurns" | "maxToolCallsPerTurn">;

/** The parts of a plan that the agent creates from its options. */
export interface PlanParts
  extends
    TurnLimits,
    Pick<InvocationPlan, "architecture" | "pipeline" | "toolSpecs" | "extensions" | "check"> {}

/** Returns the turn limits of an agent. Throws `invalid_argument` for a limit that is not an integer from 1. */
export function turnLimits({ name, maxTurns = 25, maxToolCallsPerTurn = 128 }: AgentDefinition): TurnLimits {
  for (const [option, value] of Object.entries({ maxTurns, maxToolCallsPerTurn }))
    if (!Number.isSafeInteger(value) || value < 1)
      throw new Fault(
        "invalid_argument",
        `invalid ${option} ${value} of agent ${name}: expected an integer from 1`,
      );
  return { maxTurns, maxToolCallsPerTurn };
}

/** Creates the settings that every invocation of the agent uses. */
export function invocationPlan(
  agent: PlannedAgent,
  options: AgentDefinition,
  parts: PlanParts,
): InvocationPlan {
  const { name, guardrails = [] } = options;
  // Without a model there is nothing to compact for, and no summary.
  const { extensions: host } = parts;
  const beforeCompact: BeforeCompact | null =
    host === undefined ? null : (event, ctx, problemOf) => host.beforeCompact(event, ctx, problemOf);
  const compaction =
    modelFor(agent, "main") === undefined ? null : compactionPlan(name, options.compaction, beforeCompact);
  return {
    agent,
    architecture: parts.architecture,
    childArchitecture: react(),
    instructions: options.instructions ?? "",
    maxTurns: parts.maxTurns,
    maxToolCallsPerTurn: parts.maxToolCallsPerTurn,
    ephemeral: options.ephemeral ?? [],
    guardrails,
    pipeline: parts.pipeline,
    stopHooks: options.stopHooks ?? [],
    compaction,
    window: compaction && ((ctx) => promptWindow(ctx, compaction)),
    history: options.history,
    reviewers: options.reviewers ?? [],
    memory: options.memory ?? null,
    permissions: options.permissions ?? null,
    hooks: options.toolHooks ?? null,
    telemetry: options.telemetry ?? null,
    steering: options.steering ?? "one",
    followUps: options.followUps ?? "one",
    prepareStep: options.prepareStep
      ? checkRoles(name, options.prepareStep, ["main", ...Object.keys(agent.models)])
      : null,
    stopWhen: options.stopWhen ? anyOf(options.stopWhen) : null,
    check: parts.check,
    toolSpecs: parts.toolSpecs,
    extensions: parts.extensions,
  };
}

/**
 * Creates the prompt window of an invocation. It emits an event when the model sees less than the whole conversation.
 */
function promptWindow(ctx: RunContext, plan: CompactionPlan): PromptWindow {
  const onCompact = (change: WindowChange): void => {
    const data = { architecture: "agent", name: "agent.messages_snipped", data: { ...change } };
    ctx.emitEvent(eventDraft("architecture_event", data));
  };
  return new PromptWindow({ ctx, plan, role: summaryRole, onCompact });
}
