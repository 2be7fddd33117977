import { Agent, type AgentOptions, type InvokeOptions } from "./agent.ts";
import { react, type ReActOptions } from "./agents/architectures/index.ts";
import {
  informationAgent,
  orchestration,
  startInput,
  userProxy,
  type InformationOptions,
  type SubAgent,
} from "./agents/index.ts";
import type { RunResult } from "./kernel/index.ts";

export interface ReActAgentOptions extends Omit<AgentOptions, "architecture">, ReActOptions {}

/** An agent that alternates model calls and tool calls until the model answers. `Agent` does the same by default. */
export class ReActAgent extends Agent {
  constructor({ initialToolChoice, ...options }: ReActAgentOptions) {
    super({ ...options, architecture: react(initialToolChoice === undefined ? {} : { initialToolChoice }) });
  }
}

export interface OrchestratorOptions extends AgentOptions {
  /** Each sub-agent becomes the tool `handoff_<key>` and is registered with the orchestrator. */
  readonly subAgents: readonly SubAgent[];
}

/** An agent that hands tasks to others. */
export class OrchestratorAgent extends Agent {
  constructor(options: OrchestratorOptions) {
    super(orchestration(options));
  }
}

export interface InformationAgentOptions
  extends Omit<AgentOptions, "architecture" | "inbox">, InformationOptions {}

/** An agent that follows topics, combines what arrives and publishes the result. */
export class InformationAgent extends Agent {
  constructor(options: InformationAgentOptions) {
    super(informationAgent(options));
  }

  /** Starts to follow the sources, also in later processes that host the agent. A second call has no effect. */
  start(options?: InvokeOptions): Promise<RunResult> {
    return this.invoke(startInput, options);
  }
}

export type UserProxyOptions = Omit<
  AgentOptions,
  "architecture" | "model" | "models" | "instructions" | "tools" | "maxTurns" | "compaction"
>;

/** An agent whose answers a person gives with `run.approve`. */
export class UserProxyAgent extends Agent {
  constructor(options: UserProxyOptions) {
    super({ ...options, architecture: userProxy() });
  }
}
