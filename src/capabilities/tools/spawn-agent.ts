import {
  describeRefusal,
  Fault,
  parseAgentId,
  spawnKinds,
  type AgentId,
  type JsonObject,
  type SpawnOptions,
  type SpawnOutcome,
  type TaskOutcome,
  type Tool,
  type ToolResult,
  is,
  optionTable,
  type OptionKinds,
  withWork,
} from "../../kernel/index.ts";
import { errorResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

/** An agent that the tool `spawn_agent` can spawn, with the options of the spawn. */
export interface SpawnableAgent extends SpawnOptions {
  /** Id under which the agent is registered with the runtime. */
  readonly agentId: AgentId;
  /** Text by which the model chooses the agent. */
  readonly description: string;
}

/** Options of `spawnAgentTool()`. */
export interface SpawnAgentToolOptions {
  /** Agents by the name that the model uses. Register each of them with the runtime. */
  readonly agents: Readonly<Record<string, SpawnableAgent>>;
}

const knownOptions = optionTable({ agents: is.any } satisfies OptionKinds<SpawnAgentToolOptions>);

const agentTable = optionTable({
  ...spawnKinds,
  agentId: is.checkedBy(parseAgentId),
  description: is.text(),
} satisfies OptionKinds<SpawnableAgent>);

/**
 * Creates the tool `spawn_agent`, which spawns an agent for a task and waits for its result. H4: if no seat is
 * free, the result says so, and the model can react to it. Several calls of one turn run concurrently.
 */
export function spawnAgentTool(options: SpawnAgentToolOptions): Tool {
  const { agents } = knownOptions.read("spawnAgentTool()", options);
  const names = Object.keys(agents);
  if (names.length === 0)
    throw new Fault("invalid_argument", "agents of spawnAgentTool is empty: add at least one agent");
  for (const [name, agent] of Object.entries(agents))
    agentTable.read(`agent ${name} of spawnAgentTool()`, agent);
  const list = names.map((name) => `- ${name}: ${agents[name]?.description}`);
  return tool({
    name: "spawn_agent",
    description: `Start another agent for a task and return its answer. The agent knows only the text of the task. Agents:\n${list.join("\n")}`,
    inputSchema: {
      type: "object",
      properties: {
        agent: { type: "string", enum: names },
        task: { type: "string", minLength: 1, description: "Everything that the agent needs to know" },
      },
      required: ["agent", "task"],
      additionalProperties: false,
    } as const,
    // The agent spends money within the caps of the run, and its own tool calls are checked like any others.
    risk: "high",
    destructive: false,
    suspends: true,
    execute: async ({ agent, task }, { ctx }) => {
      const hired = agents[agent];
      if (hired === undefined)
        throw new Fault("not_found", `there is no agent named ${agent}; use one of: ${names.join(", ")}`);
      const { agentId, description: _said, ...spawning } = hired;
      const outcome = await ctx.spawn(agentId, task, spawning);
      if (outcome.kind === "refused") return refusal(agent, outcome);
      return ended(agent, outcome.handle.taskId, await ctx.join(outcome.handle));
    },
  });
}

function refusal(agent: string, refused: Extract<SpawnOutcome, { kind: "refused" }>): ToolResult {
  const { reason, holders } = refused;
  const metadata: JsonObject = { agent, refused: reason, holders: holders.map((holder) => ({ ...holder })) };
  return errorResult(
    `${describeRefusal(agent, refused)}. Do the task yourself, or try again when another agent has finished`,
    metadata,
  );
}

function ended(agent: string, taskId: string, outcome: TaskOutcome): ToolResult {
  const { status, output, failure, interruption } = outcome;
  const stopped = interruption === undefined ? {} : { interruption: { ...interruption } };
  const metadata: JsonObject = { agent, taskId, status, ...stopped };
  if (status !== "completed") {
    const partial = typeof output === "string" && output !== "" ? ` Its partial output: ${output}` : "";
    return errorResult(
      `${agent} ended with the status ${status}${failure ? `: ${failure.message}` : ""}.${partial}`,
      metadata,
    );
  }
  const shown =
    typeof output === "string"
      ? { type: "text" as const, text: output }
      : { type: "json" as const, value: output };
  return withWork({ output: shown, isError: false, metadata }, outcome.work);
}
