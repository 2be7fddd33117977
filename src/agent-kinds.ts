import { Agent, type AgentOptions } from "./agent.ts";
import { orchestration, react, type ReActOptions, type SubAgentConfig } from "./agents/index.ts";

export interface ReActAgentOptions extends Omit<AgentOptions, "architecture">, ReActOptions {}

/** An agent that thinks, acts and looks, again and again: what `Agent` does unless told. */
export class ReActAgent extends Agent {
  constructor({ initialToolChoice, ...options }: ReActAgentOptions) {
    super({ ...options, architecture: react(initialToolChoice === undefined ? {} : { initialToolChoice }) });
  }
}

export interface OrchestratorOptions extends AgentOptions {
  /** Each becomes a tool `handoff_<key>`, and is registered with the orchestrator. */
  readonly subAgents: readonly SubAgentConfig[];
}

/** An agent that hands tasks to others. */
export class OrchestratorAgent extends Agent {
  constructor(options: OrchestratorOptions) {
    super(orchestration(options));
  }
}
