import {
  eventDraft,
  Fault,
  type HostedAgent,
  type ExecutionBudget,
  type JsonObject,
  type Priority,
  type Tool,
  type ToolContext,
  type ToolResult,
} from "../kernel/index.ts";
import { toWorkerResult, stopIfBudgetSpent, describeWorkerFailure } from "./architectures/run-worker.ts";
import { toolsIn, type ToolList } from "./tool-list.ts";
import { ownTool, refusal } from "./own-tool.ts";

/** An agent that tasks can be handed to. */
export interface SubAgentConfig {
  readonly agent: HostedAgent & { readonly description?: string };
  /** NORMAL unless told. H3: HIGH and CRITICAL may take a seat from someone below. */
  readonly priority?: Priority;
  /** H5: one that takes longer is cancelled. 120,000 unless told; `null`: it may take as long as it likes. */
  readonly askTimeoutMs?: number | null;
  /** Its tool is `handoff_<key>`. The agent's name, made fit for a tool's, unless told. */
  readonly key?: string;
  /** What to hand to it. The agent's own unless told. */
  readonly description?: string;
  /** Tightens the agent's own, and is tightened by what its employer has left (B6). */
  readonly budget?: Partial<ExecutionBudget>;
}

/** An entry of `subAgents`: an agent, or an agent with the settings of its hand-off tool. */
export type SubAgent = HostedAgent | SubAgentConfig;

/** The options that `OrchestratorAgent` changes before it makes an agent of them. */
export interface OrchestrationOptions {
  readonly subAgents: readonly SubAgent[];
}

const defaultTimeoutMs = 120_000;
/** Providers accept tool names of up to 64 characters. */
const keyRule = /^[A-Za-z0-9_-]{1,56}$/u;

/**
 * The options of an agent that hands tasks to others. Each sub-agent becomes a tool, so the hand-offs of one turn run in parallel. A refused
 * seat, and a child that fails, times out, is cancelled or is paused, are tool results that the model can react to (H4).
 */
export function orchestration<Options extends OrchestrationOptions>(
  options: Options,
): Options & { readonly subAgents: readonly SubAgentConfig[] } {
  const { subAgents } = options;
  if (subAgents.length === 0)
    throw new Fault(
      "invalid_argument",
      "invalid subAgents: the list is empty; an OrchestratorAgent needs at least one agent to hand tasks to",
    );
  return { ...options, subAgents: subAgents.map((each) => (isConfig(each) ? each : { agent: each })) };
}

/** The agents of a list of sub-agents, without their settings. */
export function agentsOf(subAgents: readonly SubAgent[]): readonly HostedAgent[] {
  return subAgents.map((each) => (isConfig(each) ? each.agent : each));
}

/** The agent's tools with a hand-off tool for each sub-agent that is given as a `SubAgentConfig`. */
export function withHandoffs(tools: ToolList | undefined, subAgents: readonly SubAgent[]): ToolList {
  const keys = new Map<string, SubAgentConfig>();
  for (const config of subAgents.filter(isConfig)) {
    const key = keyOf(config);
    const other = keys.get(key);
    if (other !== undefined)
      throw new Fault(
        "invalid_argument",
        `sub-agents ${other.agent.id} and ${config.agent.id} have the same tool name handoff_${key}; set another \`key\` on one of them`,
      );
    keys.set(key, config);
  }
  if (keys.size === 0) return tools ?? [];
  const handoffs = [...keys].map(([key, config]) => handoffTool(key, config));
  const isFree = ({ name }: Tool): boolean => !handoffs.some((handoff) => handoff.name === name);
  const taken = toolsIn(tools).find((tool) => !isFree(tool));
  if (taken !== undefined)
    throw new Fault(
      "invalid_argument",
      `the tool ${taken.name} has the name of a hand-off; rename the tool, or set another \`key\` on the sub-agent`,
    );
  // A tool that a server adds to the list later does not replace a hand-off.
  return () => [...toolsIn(tools).filter(isFree), ...handoffs];
}

function isConfig(subAgent: SubAgent): subAgent is SubAgentConfig {
  return "agent" in subAgent;
}

function keyOf({ key, agent }: SubAgentConfig): string {
  if (key === undefined) return agent.id.replaceAll(/[^A-Za-z0-9_-]/gu, "_").slice(0, 56);
  if (keyRule.test(key)) return key;
  throw new Fault(
    "invalid_argument",
    `the key of sub-agent ${agent.id} is ${JSON.stringify(key)}: it must be 1 to 56 letters, digits, _ and -`,
  );
}

function handoffTool(key: string, config: SubAgentConfig): Tool {
  const { agent, askTimeoutMs = defaultTimeoutMs, description = agent.description ?? "" } = config;
  if (askTimeoutMs !== null && !(askTimeoutMs > 0))
    throw new Fault(
      "invalid_argument",
      `askTimeoutMs of sub-agent ${agent.id} is ${askTimeoutMs}: it must be a number of milliseconds above 0, or null`,
    );
  const about = description === "" ? "" : ` ${description}`;
  return ownTool({
    name: `handoff_${key}`,
    description: `Hands a task to ${key} and gives its answer. It knows nothing but what the task says.${about}`,
    input: { task: { description: "All that it needs to know" } },
    suspends: true,
    execute: ({ task }, { ctx }) => handOff(ctx, key, task, { ...config, askTimeoutMs }),
  });
}

async function handOff(
  ctx: ToolContext["ctx"],
  key: string,
  task: string,
  { agent, priority, budget, askTimeoutMs }: SubAgentConfig & { readonly askTimeoutMs: number | null },
): Promise<ToolResult> {
  const spawned = await ctx.spawn(agent.id, task, {
    ...(priority !== undefined && { priority }),
    ...(budget !== undefined && { budget }),
  });
  if (spawned.kind === "refused") {
    const { reason, holders } = spawned;
    return refusal(
      `${describeWorkerFailure(key, spawned)}. Do it yourself, or try again when someone has finished`,
      {
        agent: key,
        refused: reason,
        holders: holders.map((holder) => ({ ...holder })),
      },
    );
  }
  const { handle } = spawned;
  const { taskId } = handle;
  ctx.emitEvent(eventDraft("handoff", { target: agent.id, childTaskId: taskId, task }));
  const asked = await ctx.ask(handle, null, askTimeoutMs === null ? {} : { timeoutMs: askTimeoutMs });
  const metadata: JsonObject = { agent: key, taskId };
  // One that was told to stop may take a while to: it is not waited for.
  if (asked.kind === "timed_out")
    return refusal(
      `${key} did not answer within ${askTimeoutMs} ms and was stopped. Hand it a smaller task, or do it yourself`,
      { ...metadata, status: "timed_out" },
    );
  const end = toWorkerResult(await ctx.join(handle));
  stopIfBudgetSpent({ ctx }, [end]);
  if (end.kind !== "answered")
    return refusal(describeWorkerFailure(key, end), {
      ...metadata,
      ...(end.kind === "stopped" && { status: end.status }),
    });
  const { output, text } = end;
  return {
    output: typeof output === "string" ? { type: "text", text } : { type: "json", value: output },
    isError: false,
    metadata: { ...metadata, status: "completed" },
  };
}
