import { Agent, type AgentOptions } from "./agent.ts";
import {
  ConditionalFlow,
  ParallelFlow,
  SequentialFlow,
  WorkflowFlow,
  type ConditionalFlowOptions,
  type ParallelFlowOptions,
  type WorkflowFlowOptions,
} from "./agents/index.ts";
import type { HostedAgent } from "./kernel/index.ts";

/**
 * A flow is an agent whose work is done by others: it has a name, a budget, seats, guardrails and hooks as every agent, and needs no
 * model. So flows nest, are hired, and are sub-agents.
 */
export type FlowOptions = Omit<
  AgentOptions,
  | "architecture"
  | "compaction"
  | "ephemeral"
  | "followUps"
  | "instructions"
  | "maxTurns"
  | "steering"
  | "tools"
>;

export interface SequentialOptions extends FlowOptions {
  /** At least one; an agent may stand at several places. */
  readonly steps: readonly HostedAgent[];
}

/** One agent after another, each told the input and all that was said so far. The answer is all of it. */
export class Sequential extends Agent {
  constructor({ steps, ...options }: SequentialOptions) {
    super({ ...options, architecture: new SequentialFlow(steps) });
  }
}

export interface ParallelOptions extends FlowOptions, ParallelFlowOptions {}

/** Several agents on the same input, side by side; their answers are put together. */
export class Parallel extends Agent {
  constructor({ branches, merge, ...options }: ParallelOptions) {
    super({ ...options, architecture: new ParallelFlow({ branches, ...(merge && { merge }) }) });
  }
}

export interface ConditionalOptions extends FlowOptions, ConditionalFlowOptions {}

/** One agent or the other, as a function of the input says. */
export class Conditional extends Agent {
  constructor({ predicate, ifTrue, ifFalse, ...options }: ConditionalOptions) {
    super({ ...options, architecture: new ConditionalFlow({ predicate, ifTrue, ifFalse }) });
  }
}

export interface WorkflowOptions<Name extends string = string>
  extends FlowOptions, WorkflowFlowOptions<Name> {}

/** Agents and functions at the nodes of a graph, with edges, routers, joins and circles. */
export class Workflow<Name extends string = string> extends Agent {
  readonly #flow: WorkflowFlow;

  constructor(options: WorkflowOptions<Name>) {
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

  /** The graph as Mermaid text: agents as boxes, functions rounded, what a router decides with dots. */
  toMermaid(): string {
    return this.#flow.toMermaid();
  }
}
