import { Agent, type AgentOptions } from "./agent.ts";
import { react, type ReActOptions } from "../agents/architectures/index.ts";
import {
  kindTable,
  informationAgent,
  orchestration,
  startInput,
  userProxy,
  type InformationOptions,
  type InvokeOptions,
  type PolicyOfCalls,
  type SubAgent,
} from "../agents/index.ts";
import { is, type OptionKinds, type RunResult } from "../kernel/index.ts";

export interface ReActAgentOptions<Context = unknown>
  extends Omit<AgentOptions<Context>, "architecture">, ReActOptions {}

const reactTable = kindTable(["architecture"], {
  initialToolChoice: is.any,
} satisfies OptionKinds<ReActOptions>);

/**
 * An agent that alternates between model calls and tool calls until the model answers. `Agent` does the same by
 * default.
 */
export class ReActAgent<Context = unknown> extends Agent<Context> {
  constructor(options: ReActAgentOptions<Context>) {
    reactTable.read("ReActAgent", options);
    const { initialToolChoice, ...rest } = options;
    super({ ...rest, architecture: react(initialToolChoice === undefined ? {} : { initialToolChoice }) });
  }
}

export interface OrchestratorOptions<Context = unknown> extends AgentOptions<Context> {
  /** Each sub-agent becomes the tool `handoff_<key>` and is registered with the orchestrator. */
  readonly subAgents: readonly SubAgent[];
}

const orchestratorTable = kindTable([]);

/** An agent that hands tasks to others. */
export class OrchestratorAgent<Context = unknown> extends Agent<Context> {
  constructor(options: OrchestratorOptions<Context>) {
    orchestratorTable.read("OrchestratorAgent", options);
    super(orchestration(options));
  }
}

export interface InformationAgentOptions
  extends Omit<AgentOptions, "architecture" | "inbox">, InformationOptions {}

const informationTable = kindTable(["architecture", "inbox"], {
  sources: is.any,
  topic: is.any,
  aggregate: is.any,
} satisfies OptionKinds<InformationOptions>);

/** An agent that follows topics, combines the received messages and publishes the result. */
export class InformationAgent extends Agent {
  constructor(options: InformationAgentOptions) {
    informationTable.read("InformationAgent", options);
    super(informationAgent(options));
  }

  /**
   * Starts to follow the sources. The agent continues to follow them in later processes that host it. A second call
   * has no effect.
   */
  start(options?: InvokeOptions): Promise<RunResult> {
    return this.invoke(startInput, options);
  }
}

/** Options that are meaningful only for an agent that calls a model itself. */
const notOfProxies = [
  "architecture",
  "model",
  "models",
  "instructions",
  "tools",
  "maxTurns",
  "compaction",
] as const;

export type UserProxyOptions = Omit<AgentOptions, (typeof notOfProxies)[number] | PolicyOfCalls>;

const proxyTable = kindTable(notOfProxies);

/** An agent whose answers a person gives with `run.approve`. */
export class UserProxyAgent extends Agent {
  constructor(options: UserProxyOptions) {
    proxyTable.read("UserProxyAgent", options);
    super({ ...options, architecture: userProxy() });
  }
}
