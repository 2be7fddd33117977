import type {
  HostedAgent,
  AgentSession,
  Architecture,
  Dependencies,
  EmittableEvent,
} from "../../kernel/index.ts";
import { requireCount } from "../architectures/option-checks.ts";
import { architectureEvent } from "../architectures/role-call.ts";
import { toldFlow } from "./told-flow.ts";
import { mermaidOf } from "./workflow-drawing.ts";
import { WorkflowGraph, type WorkflowGraphOptions } from "./workflow-graph.ts";
import { WorkflowSchedule, type WorkflowBounds } from "./workflow-schedule.ts";
import { WorkflowWalk } from "./workflow-walk.ts";

export interface WorkflowFlowOptions<Name extends string = string>
  extends WorkflowGraphOptions<Name>, Partial<WorkflowBounds> {}

/**
 * Agents and functions at the nodes of a graph, each at work as soon as all that can come to it has come. A node that fails stops the
 * others and the workflow; a bound that is met, too.
 *
 * Every visit of a node is recorded as one value, in a branch of the node's own: a replay takes what is recorded and goes on with the
 * visits that were open, however they lay in time.
 */
export class WorkflowFlow implements Architecture {
  readonly name = "workflow";
  readonly requiresModel = false;
  readonly graph: WorkflowGraph;
  readonly #bounds: WorkflowBounds;

  constructor({ maxSteps = 100, maxVisits = 25, maxConcurrency = 8, ...graph }: WorkflowFlowOptions) {
    this.graph = new WorkflowGraph(graph);
    this.#bounds = {
      maxSteps: requireCount("the workflow", "maxSteps", maxSteps),
      maxVisits: requireCount("the workflow", "maxVisits", maxVisits),
      maxConcurrency: requireCount("the workflow", "maxConcurrency", maxConcurrency),
    };
  }

  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    return toldFlow(this.name, session, this.#go(session, deps, prompt));
  }

  /** For a page that shows Mermaid. */
  toMermaid(): string {
    return mermaidOf(this.graph);
  }

  declaredWorkers(): Readonly<Record<string, HostedAgent>> {
    return this.graph.agents();
  }

  async *#go(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const schedule = new WorkflowSchedule(this.graph, this.#bounds);
    const met = await new WorkflowWalk(this.graph, schedule, session, deps).toTheEnd(prompt);
    const { visits, arrivedAtEnd: value = "" } = schedule;
    session.metadata["visits"] = visits;
    if (typeof value !== "string") session.metadata["value"] = value;
    if (met === undefined) return;
    session.interrupted = true;
    session.interruptionReason = `${met.bound}_exceeded`;
    yield architectureEvent(this.name, "bound_met", { ...met });
  }
}
