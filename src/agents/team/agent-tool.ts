import {
  spawnKinds,
  Fault,
  type HostedAgent,
  type Tool,
  is,
  optionTable,
  type OptionKinds,
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

const knownOptions = optionTable({
  name: is.text(),
  description: is.text(),
  priority: spawnKinds.priority,
  askTimeoutMs: is.number({ or: [null, "no limit"] }),
  budget: spawnKinds.budget,
  needsApproval: is.boolean({ default: false }),
} satisfies OptionKinds<AgentToolOptions>);

/** Tool names that every provider accepts. */
const validName = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/u;

/**
 * Creates the tool of `Agent.asTool`. Throws for invalid options, which would otherwise make a call fail during a
 * run.
 */
export function agentTool(
  agent: HostedAgent & { readonly description?: string },
  options: AgentToolOptions,
): Tool {
  const {
    name = toolNameOf(agent),
    needsApproval,
    ...config
  } = knownOptions.read(`asTool() of agent ${agent.id}`, options);
  if (!validName.test(name))
    throw new Fault(
      "invalid_argument",
      `invalid name ${JSON.stringify(name)} of asTool() of agent ${agent.id}: expected 1 to 64 letters, digits, _ or -, starting with a letter or _`,
    );
  return { ...handoffTool(name, name, { ...config, agent }), needsApproval: () => needsApproval };
}
