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
import { endOf, stopIfSpent, whyNot } from "./architectures/hire.ts";
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

/** What of an agent's options makes it an orchestrator. */
export interface OrchestrationOptions {
  readonly subAgents: readonly SubAgentConfig[];
  readonly tools?: ToolList;
  readonly colleagues?: readonly HostedAgent[];
}

const defaultTimeoutMs = 120_000;
/** Providers take names of tools up to 64 characters long. */
const keyRule = /^[A-Za-z0-9_-]{1,56}$/u;

/**
 * An agent that hands tasks to others: each is a tool of its own, so those of one turn work side by side. A refused seat and a child that
 * failed, took too long, was cancelled or paused are results the model can react to (H4); none of them ends the orchestrator.
 */
export function orchestration<Options extends OrchestrationOptions>(
  options: Options,
): Omit<Options, "subAgents"> & Required<Pick<OrchestrationOptions, "tools" | "colleagues">> {
  const { subAgents, ...rest } = options;
  if (subAgents.length === 0)
    throw new Fault("invalid_argument", "an orchestrator needs someone to hand tasks to: subAgents is empty");
  const keys = new Map<string, SubAgentConfig>();
  for (const config of subAgents) {
    const key = keyOf(config);
    const other = keys.get(key);
    if (other !== undefined)
      throw new Fault(
        "invalid_argument",
        `sub-agents ${other.agent.id} and ${config.agent.id} would both be handoff_${key}: give one of them another key`,
      );
    keys.set(key, config);
  }
  const handoffs = [...keys].map(([key, config]) => handoffTool(key, config));
  const isFree = ({ name }: Tool): boolean => !handoffs.some((handoff) => handoff.name === name);
  const taken = toolsIn(options.tools).find((tool) => !isFree(tool));
  if (taken !== undefined)
    throw new Fault(
      "invalid_argument",
      `a tool of the orchestrator is named ${taken.name}, as a hand-off is: give the tool another name, or the sub-agent another key`,
    );
  return {
    ...rest,
    // What comes into a list later, from a server, takes no hand-off's place.
    tools: () => [...toolsIn(options.tools).filter(isFree), ...handoffs],
    colleagues: [...new Set([...(options.colleagues ?? []), ...subAgents.map(({ agent }) => agent)])],
  };
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
    return refusal(`${whyNot(key, spawned)}. Do it yourself, or try again when someone has finished`, {
      agent: key,
      refused: reason,
      holders: holders.map((holder) => ({ ...holder })),
    });
  }
  const { handle } = spawned;
  const { taskId } = handle;
  ctx.tell(eventDraft("handoff", { target: agent.id, childTaskId: taskId, task }));
  const asked = await ctx.ask(handle, null, askTimeoutMs === null ? {} : { timeoutMs: askTimeoutMs });
  const metadata: JsonObject = { agent: key, taskId };
  // One that was told to stop may take a while to: it is not waited for.
  if (asked.kind === "timed_out")
    return refusal(
      `${key} did not answer within ${askTimeoutMs} ms and was stopped. Hand it a smaller task, or do it yourself`,
      { ...metadata, status: "timed_out" },
    );
  const end = endOf(await ctx.join(handle));
  stopIfSpent({ ctx }, [end]);
  if (end.kind !== "answered")
    return refusal(whyNot(key, end), { ...metadata, ...(end.kind === "stopped" && { status: end.status }) });
  const { output, text } = end;
  return {
    output: typeof output === "string" ? { type: "text", text } : { type: "json", value: output },
    isError: false,
    metadata: { ...metadata, status: "completed" },
  };
}
