import { Agent, type AgentOptions } from "./agent.ts";
import {
  kindTable,
  ConditionalFlow,
  ParallelFlow,
  SequentialFlow,
  GraphFlow,
  type ConditionalFlowOptions,
  type ParallelFlowOptions,
  type GraphFlowOptions,
  type PolicyOfCalls,
} from "../agents/index.ts";
import { is, type HostedAgent, type OptionKinds } from "../kernel/index.ts";

/**
 * Options of a flow. A flow is an agent whose work is done by other agents: it has a name, a budget, seats,
 * guardrails and hooks, and needs no model. Flows can be nested and used as sub-agents.
 */
type FlowOptions = Omit<AgentOptions, (typeof notOfFlows)[number] | PolicyOfCalls>;

/**
 * Options that are meaningful only for an agent that calls a model itself. `Agent` refuses the options of
 * `PolicyOfCalls` with a message that names the steps.
 */
const notOfFlows = [
  "architecture",
  "compaction",
  "reviewers",
  "ephemeral",
  "followUps",
  "instructions",
  "maxTurns",
  "steering",
  "tools",
] as const;

export interface SequentialOptions extends FlowOptions {
  /** The agents, at least one. The same agent may occur several times. */
  readonly steps: readonly HostedAgent[];
}

const sequentialTable = kindTable(notOfFlows, { steps: is.any } satisfies OptionKinds<
  Omit<SequentialOptions, keyof FlowOptions>
>);

/**
 * Runs agents one after another. Each agent receives the input and all earlier answers. The last answer is the
 * result. `metadata.sequential.answers` contains all answers.
 */
export class Sequential extends Agent {
  constructor(options: SequentialOptions) {
    sequentialTable.read("Sequential", options);
    const { steps, ...rest } = options;
    super({ ...rest, architecture: new SequentialFlow(steps) });
  }
}

export interface ParallelOptions extends FlowOptions, ParallelFlowOptions {}

const parallelTable = kindTable(notOfFlows, { branches: is.any, merge: is.any } satisfies OptionKinds<
  Omit<ParallelOptions, keyof FlowOptions>
>);

/** Runs several agents on the same input in parallel and merges their answers. */
export class Parallel extends Agent {
  constructor(options: ParallelOptions) {
    parallelTable.read("Parallel", options);
    const { branches, merge, ...rest } = options;
    super({ ...rest, architecture: new ParallelFlow({ branches, ...(merge && { merge }) }) });
  }
}

export interface ConditionalOptions extends FlowOptions, ConditionalFlowOptions {}

const conditionalTable = kindTable(notOfFlows, {
  predicate: is.any,
  ifTrue: is.any,
  ifFalse: is.any,
} satisfies OptionKinds<Omit<ConditionalOptions, keyof FlowOptions>>);

/** Runs one of two agents, chosen by a function of the input. */
export class Conditional extends Agent {
  constructor(options: ConditionalOptions) {
    conditionalTable.read("Conditional", options);
    const { predicate, ifTrue, ifFalse, ...rest } = options;
    super({ ...rest, architecture: new ConditionalFlow({ predicate, ifTrue, ifFalse }) });
  }
}

/** Options of `Graph`. */
export interface GraphOptions<Name extends string = string> extends FlowOptions, GraphFlowOptions<Name> {}

const graphTable = kindTable(notOfFlows, {
  nodes: is.any,
  edges: is.any,
  routers: is.any,
  maxSteps: is.any,
  maxVisits: is.any,
  maxConcurrency: is.any,
} satisfies OptionKinds<Omit<GraphOptions, keyof FlowOptions>>);

/** Runs agents and functions as nodes of a graph with edges, routers, joins and cycles. */
export class Graph<Name extends string = string> extends Agent {
  readonly #flow: GraphFlow;

  constructor(options: GraphOptions<Name>) {
    graphTable.read("Graph", options);
    const { nodes, edges, routers, maxSteps, maxVisits, maxConcurrency, ...rest } = options;
    const flow = new GraphFlow({
      nodes,
      edges,
      ...(routers && { routers }),
      ...(maxSteps !== undefined && { maxSteps }),
      ...(maxVisits !== undefined && { maxVisits }),
      ...(maxConcurrency !== undefined && { maxConcurrency }),
    });
    super({ ...rest, architecture: flow });
    this.#flow = flow;
  }

  /**
   * Returns the graph as Mermaid source: agents as boxes, functions as rounded boxes, routed edges as dotted lines.
   */
  toMermaid(): string {
    return this.#flow.toMermaid();
  }
}
