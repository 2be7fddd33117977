import {
  checkList,
  spawnKinds,
  eventDraft,
  Fault,
  type HostedAgent,
  type ExecutionBudget,
  type JsonObject,
  type Priority,
  type SpawnOptions,
  type Tool,
  type ToolContext,
  type ToolResult,
  is,
  optionTable,
  type OptionKinds,
  withWork,
} from "../../kernel/index.ts";
import { toWorkerResult, stopIfBudgetSpent, describeWorkerFailure } from "./run-worker.ts";
import { markHandoff } from "./handed-answers.ts";
import { checkSubAgent } from "../base/part-check.ts";
import { toolsIn, type ToolList } from "../base/tool-list.ts";
import { ownTool, refusal } from "../base/own-tool.ts";

/** A sub-agent with the settings of its hand-off tool. */
export interface SubAgentConfig extends Pick<SpawnOptions, "onFull" | "onPause" | "tools"> {
  readonly agent: HostedAgent & { readonly description?: string };
  /**
   * The priority of the spawned task. H3: HIGH and CRITICAL may preempt a task of lower priority. Default: `NORMAL`.
   */
  readonly priority?: Priority;
  /**
   * H5: maximum time for the answer in milliseconds; a task that takes longer is cancelled. `null` sets no limit.
   * Default: 120_000.
   */
  readonly askTimeoutMs?: number | null;
  /**
   * Key of the hand-off tool, which is named `handoff_<key>`. Default: the agent's name, in which characters that a
   * tool name must not contain are replaced.
   */
  readonly key?: string;
  /** Describes to the model what to hand to the agent. Default: the agent's own description. */
  readonly description?: string;
  /**
   * B6: budget of the spawned task, in addition to the agent's own budget and the rest of the parent's budget. The
   * lowest limit applies.
   */
  readonly budget?: Partial<ExecutionBudget>;
}

/** An entry of `subAgents`: an agent, or an agent with the settings of its hand-off tool. */
export type SubAgent = HostedAgent | SubAgentConfig;

/** The options that `OrchestratorAgent` changes before it creates an agent. */
export interface OrchestrationOptions {
  readonly subAgents: readonly SubAgent[];
}

const defaultTimeoutMs = 120_000;
/** Matches valid keys. Their length is limited, because providers accept tool names of up to 64 characters. */
const keyRule = /^[A-Za-z0-9_-]{1,56}$/u;

/**
 * Returns the options of an agent that gives tasks to other agents. Each sub-agent becomes a tool, so that the
 * hand-offs of one turn run in parallel. If a seat is refused, or a child fails, times out, is cancelled or is
 * paused, the tool returns a result to which the model can react (H4).
 */
export function orchestration<Options extends OrchestrationOptions>(
  options: Options,
): Options & { readonly subAgents: readonly SubAgentConfig[] } {
  const { subAgents } = options;
  checkList("subAgents of an OrchestratorAgent", subAgents ?? {}, "use subAgents: [agent]");
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

const knownOptions = optionTable({
  agent: is.any,
  priority: spawnKinds.priority,
  askTimeoutMs: is.number({ or: [null, "no limit"] }),
  key: is.text(),
  description: is.text(),
  budget: spawnKinds.budget,
  onFull: spawnKinds.onFull,
  onPause: spawnKinds.onPause,
  tools: is.list({ of: is.text() }),
} satisfies OptionKinds<SubAgentConfig>);

/** Throws for an invalid entry, which would otherwise make a hand-off fail during a run. */
function checkEntry(entry: SubAgent): void {
  checkSubAgent("entry of subAgents", entry);
  if (!isConfig(entry)) return;
  checkSubAgent("agent of an entry of subAgents", entry.agent);
  knownOptions.read(`sub-agent ${entry.agent.id}`, entry);
}

/** Returns the agent's tools with a hand-off tool for each sub-agent that is given as a `SubAgentConfig`. */
export function withHandoffs(tools: ToolList | undefined, subAgents: readonly SubAgent[]): ToolList {
  for (const entry of subAgents) checkEntry(entry);
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
  const handoffs = [...keys].map(([key, config]) => handoffTool(`handoff_${key}`, key, config));
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

/** Returns the agent's id, in which characters that a tool name must not contain are replaced. */
export function toolNameOf({ id }: HostedAgent): string {
  return id.replaceAll(/[^A-Za-z0-9_-]/gu, "_").slice(0, 64);
}

function keyOf({ key, agent }: SubAgentConfig): string {
  if (key === undefined) return toolNameOf(agent).slice(0, 56);
  if (keyRule.test(key)) return key;
  throw new Fault(
    "invalid_argument",
    `invalid key ${JSON.stringify(key)} of sub-agent ${agent.id}: expected 1 to 56 letters, digits, _ and -`,
  );
}

/** Creates a tool that spawns an agent with the task that the model writes and returns its answer. */
export function handoffTool(name: string, key: string, config: Omit<SubAgentConfig, "key">): Tool {
  const { agent, askTimeoutMs = defaultTimeoutMs, description = agent.description ?? "" } = config;
  if (askTimeoutMs !== null && !(askTimeoutMs > 0))
    throw new Fault(
      "invalid_argument",
      `invalid askTimeoutMs ${askTimeoutMs} of sub-agent ${agent.id}: expected milliseconds above 0, or null`,
    );
  const about = description === "" ? "" : ` ${description}`;
  const tool = ownTool({
    name,
    description: `Hands a task to ${key} and returns its answer. ${key} knows only what the task says.${about}`,
    input: { task: { description: "The task, with everything that the agent needs to know" } },
    suspends: true,
    execute: ({ task }, { ctx }) => handOff(ctx, key, task, { ...config, askTimeoutMs }),
  });
  return markHandoff(tool, { name: key, agent });
}

/** The options with which a sub-agent is spawned. */
function spawnOptionsOf({ priority, budget, onFull, onPause, tools }: SubAgentConfig): SpawnOptions {
  return {
    ...(priority !== undefined && { priority }),
    ...(budget !== undefined && { budget }),
    ...(onFull !== undefined && { onFull }),
    ...(onPause !== undefined && { onPause }),
    ...(tools !== undefined && { tools }),
  };
}

async function handOff(
  ctx: ToolContext["ctx"],
  key: string,
  task: string,
  config: SubAgentConfig & { readonly askTimeoutMs: number | null },
): Promise<ToolResult> {
  const { agent, askTimeoutMs } = config;
  const spawned = await ctx.spawn(agent.id, task, spawnOptionsOf(config));
  if (spawned.kind === "refused") {
    const { reason, holders } = spawned;
    return refusal(
      `${describeWorkerFailure(key, spawned)}. Do the task yourself, or try again when another agent has finished`,
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
  // A cancelled child may need a while to end; the parent does not wait for it.
  if (asked.kind === "timed_out")
    return refusal(
      `${key} did not answer within ${askTimeoutMs} ms and was cancelled. Hand it a smaller task, or do it yourself`,
      { ...metadata, status: "timed_out" },
    );
  const end = toWorkerResult(await ctx.join(handle));
  stopIfBudgetSpent({ ctx }, [end]);
  if (end.kind !== "answered")
    return refusal(describeWorkerFailure(key, end), {
      ...metadata,
      ...(end.kind === "stopped" && { status: end.status }),
    });
  const { output, text, work } = end;
  const answer: ToolResult = {
    output: typeof output === "string" ? { type: "text", text } : { type: "json", value: output },
    isError: false,
    metadata: { ...metadata, status: "completed" },
  };
  return withWork(answer, work);
}
