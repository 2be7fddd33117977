import { Agent, type AgentOptions, type InvokeOptions } from "./agent.ts";
import { react, type ReActOptions } from "./agents/architectures/index.ts";
import {
  information,
  orchestration,
  startInput,
  userProxy,
  type InformationOptions,
  type SubAgent,
} from "./agents/index.ts";
import type { RunResult } from "./kernel/index.ts";

export interface ReActAgentOptions extends Omit<AgentOptions, "architecture">, ReActOptions {}

/** An agent that thinks, acts and looks, again and again: what `Agent` does unless told. */
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

/** An agent that follows topics, makes one thing of what came in and publishes it. */
export class InformationAgent extends Agent {
  constructor(options: InformationAgentOptions) {
    super(information(options));
  }

  /** Follows its sources from now on, also in later processes that host it. Starting it again changes nothing. */
  start(options?: InvokeOptions): Promise<RunResult> {
    return this.invoke(startInput, options);
  }
}

export type UserProxyOptions = Omit<
  AgentOptions,
  "architecture" | "model" | "models" | "instructions" | "tools" | "maxTurns" | "compaction"
>;

/** Stands for a person, who answers with `run.approve`: what they say is its answer. */
export class UserProxyAgent extends Agent {
  constructor(options: UserProxyOptions) {
    super({ ...options, architecture: userProxy() });
  }
}
