import {
  is,
  optionTable,
  type HostedAgent,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { architectureEvent } from "../../context/role-call.ts";
import { withFlowEvents } from "./flow-events.ts";
import { END, START, GraphDefinition, type GraphDefinitionOptions } from "./graph-definition.ts";
import { GraphSchedule, type GraphBounds } from "./graph-schedule.ts";
import { GraphWalk } from "./graph-walk.ts";

/** Draws the graph as a Mermaid flowchart: agents as boxes, functions as rounded boxes, routed edges dotted. */
function mermaidOf(graph: GraphDefinition): string {
  const ids = new Map(graph.names.map((name, index) => [name, `n${index}`]));
  const idOf = (name: string): string => ids.get(name) ?? name;
  const nodes = graph.names.map((name) => {
    const label = `"${name}"`;
    return `  ${idOf(name)}${typeof graph.node(name) === "function" ? `(${label})` : `[${label}]`}`;
  });
  const ways = graph.ways.map(
    ({ from, to, routed }) => `  ${idOf(from)} ${routed ? "-.->" : "-->"} ${idOf(to)}`,
  );
  return ["flowchart TD", `  ${START}([${START}])`, ...nodes, `  ${END}([${END}])`, ...ways].join("\n");
}

const boundTable = optionTable({
  maxSteps: is.integer({ from: 1, default: 100 }),
  maxVisits: is.integer({ from: 1, default: 25 }),
  maxConcurrency: is.integer({ from: 1, default: 8 }),
} satisfies OptionKinds<GraphBounds>);

export interface GraphFlowOptions<Name extends string = string>
  extends GraphDefinitionOptions<Name>, Partial<GraphBounds> {}

/**
 * An architecture that runs agents and functions as nodes of a graph. Each node starts as soon as all values that
 * can arrive have arrived. A node that fails, or a limit that is reached, stops the graph.
 *
 * Every visit is recorded as one value in a branch of its node, so that a replay uses the recorded values and
 * continues the visits that were running.
 */
export class GraphFlow implements Architecture {
  /** The name that stored events and results contain. */
  readonly name = "workflow";
  readonly requiresModel = false;
  readonly hasOwnCalls = false;
  readonly graph: GraphDefinition;
  readonly #bounds: GraphBounds;

  constructor({ maxSteps, maxVisits, maxConcurrency, ...graph }: GraphFlowOptions) {
    this.graph = new GraphDefinition(graph);
    this.#bounds = boundTable.read("the graph", { maxSteps, maxVisits, maxConcurrency });
  }

  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    return withFlowEvents(this.name, session, this.#go(session, deps, prompt));
  }

  /** The graph as Mermaid source. */
  toMermaid(): string {
    return mermaidOf(this.graph);
  }

  declaredWorkers(): Readonly<Record<string, HostedAgent>> {
    return this.graph.agents();
  }

  async *#go(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const schedule = new GraphSchedule(this.graph, this.#bounds);
    const met = await new GraphWalk(this.graph, schedule, session, deps).toTheEnd(prompt);
    const { visits, arrivedAtEnd: value = "" } = schedule;
    session.metadata["visits"] = visits;
    if (typeof value !== "string") session.metadata["value"] = value;
    if (met === undefined) return;
    session.interrupted = true;
    session.interruptionReason = `${met.bound}_exceeded`;
    yield architectureEvent(this.name, "bound_met", { ...met });
  }
}
