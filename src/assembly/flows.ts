import { Agent, type AgentOptions } from "./agent.ts";
import {
  checkKindOptions,
  ConditionalFlow,
  ParallelFlow,
  SequentialFlow,
  WorkflowFlow,
  type ConditionalFlowOptions,
  type ParallelFlowOptions,
  type WorkflowFlowOptions,
} from "../agents/index.ts";
import type { ForeignNames, HostedAgent } from "../kernel/index.ts";

/**
 * Options of a flow. A flow is an agent whose work other agents do: it has a name, a budget, seats, guardrails and
 * hooks, and needs no model. Flows can be nested and used as sub-agents.
 */
type FlowOptions = Omit<AgentOptions, (typeof notOfFlows)[number]>;

/** The options of an agent that calls a model itself. */
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

/** The names of other libraries for the option that lists the agents of a flow. */
function membersNamed(option: string): ForeignNames {
  const fix = `use \`${option}\``;
  return { agents: fix, workers: fix, nodes: fix, steps: fix, branches: fix };
}

const ofConditional: ForeignNames = {
  condition: "use `predicate`",
  if: "use `predicate`",
  when: "use `predicate`",
  else: "use `ifFalse`",
};

const ofWorkflow: ForeignNames = {
  ...membersNamed("nodes"),
  conditionalEdges: "use `routers`",
  entryPoint: "use an edge from START: [START, node]",
  recursionLimit: "use `maxSteps`",
  state: "remove it; a node receives the value of the node before it",
};

export interface SequentialOptions extends FlowOptions {
  /** The agents, at least one. An agent may occur several times. */
  readonly steps: readonly HostedAgent[];
}

/**
 * Runs agents one after another. Each receives the input and all earlier answers; the last answer is the answer.
 * `metadata.sequential.answers` has all of them.
 */
export class Sequential extends Agent {
  constructor(options: SequentialOptions) {
    checkKindOptions("Sequential", options, notOfFlows, ["steps"], membersNamed("steps"));
    const { steps, ...rest } = options;
    super({ ...rest, architecture: new SequentialFlow(steps) });
  }
}

export interface ParallelOptions extends FlowOptions, ParallelFlowOptions {}

/** Runs several agents on the same input in parallel and merges their answers. */
export class Parallel extends Agent {
  constructor(options: ParallelOptions) {
    checkKindOptions("Parallel", options, notOfFlows, ["branches", "merge"], membersNamed("branches"));
    const { branches, merge, ...rest } = options;
    super({ ...rest, architecture: new ParallelFlow({ branches, ...(merge && { merge }) }) });
  }
}

export interface ConditionalOptions extends FlowOptions, ConditionalFlowOptions {}

/** Runs one of two agents, chosen by a function of the input. */
export class Conditional extends Agent {
  constructor(options: ConditionalOptions) {
    checkKindOptions("Conditional", options, notOfFlows, ["predicate", "ifTrue", "ifFalse"], ofConditional);
    const { predicate, ifTrue, ifFalse, ...rest } = options;
    super({ ...rest, architecture: new ConditionalFlow({ predicate, ifTrue, ifFalse }) });
  }
}

export interface WorkflowOptions<Name extends string = string>
  extends FlowOptions, WorkflowFlowOptions<Name> {}

/** Runs agents and functions as nodes of a graph with edges, routers, joins and cycles. */
export class Workflow<Name extends string = string> extends Agent {
  readonly #flow: WorkflowFlow;

  constructor(options: WorkflowOptions<Name>) {
    const own = ["nodes", "edges", "routers", "maxSteps", "maxVisits", "maxConcurrency"];
    checkKindOptions("Workflow", options, notOfFlows, own, ofWorkflow);
    const { nodes, edges, routers, maxSteps, maxVisits, maxConcurrency, ...rest } = options;
    const flow = new WorkflowFlow({
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

  /** The graph as Mermaid source: agents as boxes, functions as rounded boxes, routed edges dotted. */
  toMermaid(): string {
    return this.#flow.toMermaid();
  }
}
