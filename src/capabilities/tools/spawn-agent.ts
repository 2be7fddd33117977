import {
  describeRefusal,
  Fault,
  parseAgentId,
  type AgentId,
  type JsonObject,
  type SpawnOptions,
  type SpawnOutcome,
  type TaskOutcome,
  type Tool,
  type ToolResult,
} from "../../kernel/index.ts";
import { errorResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

export interface HireableAgent extends SpawnOptions {
  readonly agentId: AgentId;
  /** What it is good at: the model chooses by it. */
  readonly description: string;
}

export interface SpawnAgentToolOptions {
  /** By the name the model uses. They are to be registered with the runtime. */
  readonly agents: Readonly<Record<string, HireableAgent>>;
}

/**
 * Hires an agent for a task and waits for what it comes to. H4: a refused seat is a result the model can react to. Several calls of one
 * turn hire side by side.
 */
export function spawnAgentTool({ agents }: SpawnAgentToolOptions): Tool {
  const names = Object.keys(agents);
  if (names.length === 0) throw new Fault("invalid_argument", "spawn_agent needs at least one agent to hire");
  for (const { agentId } of Object.values(agents)) parseAgentId(agentId);
  const list = names.map((name) => `- ${name}: ${agents[name]?.description}`);
  return tool({
    name: "spawn_agent",
    description: `Hires an agent for a task of its own and gives its answer. It knows nothing but what the task says. There are:\n${list.join("\n")}`,
    inputSchema: {
      type: "object",
      properties: {
        agent: { type: "string", enum: names },
        task: { type: "string", minLength: 1, description: "All that the agent needs to know" },
      },
      required: ["agent", "task"],
      additionalProperties: false,
    } as const,
    // It pays, within the caps of the run; what it does passes its own gate.
    risk: "high",
    destructive: false,
    suspends: true,
    execute: async ({ agent, task }, { ctx }) => {
      const hired = agents[agent];
      if (hired === undefined)
        throw new Fault("not_found", `there is no agent ${agent}; there are: ${names.join(", ")}`);
      const { agentId, description: _said, ...options } = hired;
      const outcome = await ctx.spawn(agentId, task, options);
      if (outcome.kind === "refused") return refusal(agent, outcome);
      return ended(agent, outcome.handle.taskId, await ctx.join(outcome.handle));
    },
  });
}

function refusal(agent: string, refused: Extract<SpawnOutcome, { kind: "refused" }>): ToolResult {
  const { reason, holders } = refused;
  const metadata: JsonObject = { agent, refused: reason, holders: holders.map((holder) => ({ ...holder })) };
  return errorResult(
    `${describeRefusal(agent, refused)}. Do it yourself, or try again when someone has finished`,
    metadata,
  );
}

function ended(agent: string, taskId: string, outcome: TaskOutcome): ToolResult {
  const { status, output, failure, interruption } = outcome;
  const stopped = interruption === undefined ? {} : { interruption: { ...interruption } };
  const metadata: JsonObject = { agent, taskId, status, ...stopped };
  if (status !== "completed") {
    const said = typeof output === "string" && output !== "" ? ` So far it said: ${output}` : "";
    return errorResult(
      `${agent} ended as ${status}${failure ? `: ${failure.message}` : ""}.${said}`,
      metadata,
    );
  }
  const shown =
    typeof output === "string"
      ? { type: "text" as const, text: output }
      : { type: "json" as const, value: output };
  return { output: shown, isError: false, metadata };
}
