import {
  checkOptions,
  executionBudget,
  Fault,
  optionNames,
  parsePriority,
  type HostedAgent,
  type Tool,
} from "../../kernel/index.ts";
import { handoffTool, toolNameOf, type SubAgentConfig } from "./sub-agents.ts";

/** Options of `asTool`. */
export interface AgentToolOptions extends Pick<
  SubAgentConfig,
  "description" | "priority" | "askTimeoutMs" | "budget"
> {
  /**
   * Name by which the model calls the tool: 1 to 64 letters, digits, `_` and `-`, starting with a letter or `_`.
   * Default: the agent's id, with other characters replaced by `_`.
   */
  readonly name?: string;
  /** Whether each call needs a person's approval. Default: `false`. */
  readonly needsApproval?: boolean;
}

const knownOptions = optionNames<AgentToolOptions>({
  name: true,
  description: true,
  priority: true,
  askTimeoutMs: true,
  budget: true,
  needsApproval: true,
});

/** Tool names that every provider accepts. */
const validName = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/u;

/** Creates the tool of `Agent.asTool`. Invalid options are refused here, before a call would fail in a run. */
export function agentTool(
  agent: HostedAgent & { readonly description?: string },
  options: AgentToolOptions,
): Tool {
  checkOptions(`asTool() of agent ${agent.id}`, options, knownOptions);
  const { name = toolNameOf(agent), needsApproval = false, ...config } = options;
  if (!validName.test(name))
    throw new Fault(
      "invalid_argument",
      `invalid name ${JSON.stringify(name)} of asTool() of agent ${agent.id}: expected 1 to 64 letters, digits, _ or -, starting with a letter or _`,
    );
  if (config.priority !== undefined) parsePriority(config.priority);
  if (config.budget !== undefined) executionBudget(config.budget);
  return { ...handoffTool(name, name, { ...config, agent }), needsApproval: () => needsApproval };
}
