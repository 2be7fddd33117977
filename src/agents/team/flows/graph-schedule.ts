import type { JsonValue } from "../../../kernel/index.ts";
import { END, type GraphDefinition } from "./graph-definition.ts";

export interface GraphBounds {
  /** Maximum number of visits of all nodes together. Default: 100. */
  readonly maxSteps: number;
  /** Maximum number of visits of each node. Default: 25. */
  readonly maxVisits: number;
  /** Maximum number of nodes that run at once. Default: 8. */
  readonly maxConcurrency: number;
}

/** One start of a node. */
export interface Visit {
  readonly node: string;
  /** The number of the visit of this node, from 1. */
  readonly visit: number;
  readonly input: JsonValue;
  /** The length of the longest chain of visits that led to this one, from 1. */
  readonly depth: number;
}

/** A limit was reached, and no further node starts. */
export interface BoundMet {
  readonly bound: "max_steps" | "max_visits";
  readonly node: string;
}

interface Arrival {
  /** The position of the transition by which the value arrived. */
  readonly order: number;
  readonly value: JsonValue;
  readonly depth: number;
}

/**
 * Decides which nodes may start with which values. It is pure: the caller executes the nodes.
 *
 * A node starts when it has a value and cannot receive a further one, because no running node, and no node with a
 * value, leads to it. If nodes of a cycle wait for each other, the one that was declared first starts. So the input
 * of each visit depends only on the values and not on which node was faster, and a replay gives the same visits.
 */
export class GraphSchedule {
  readonly #graph: GraphDefinition;
  readonly #bounds: GraphBounds;
  readonly #arrived = new Map<string, Arrival[]>();
  /** The running nodes, with the depth of their visit. */
  readonly #atWork = new Map<string, number>();
  readonly #visits = new Map<string, number>();
  #steps = 0;

  constructor(graph: GraphDefinition, bounds: GraphBounds) {
    this.#graph = graph;
    this.#bounds = bounds;
  }

  /**
   * Passes the value of a finished node, or the graph's input, along its edges and along the transitions that its
   * router has chosen.
   */
  pass(from: string, value: JsonValue, chosen: readonly string[]): void {
    const depth = this.#atWork.get(from) ?? 0;
    this.#atWork.delete(from);
    for (const [order, way] of this.#graph.ways.entries()) {
      if (way.from !== from || (way.routed && !chosen.includes(way.to))) continue;
      const arrived = this.#arrived.get(way.to) ?? [];
      this.#arrived.set(way.to, [...arrived, { order, value, depth }]);
    }
  }

  /** Starts the nodes that may start now. They run until `pass` is called for them. */
  begin(): readonly Visit[] | BoundMet {
    const begun: Visit[] = [];
    for (const node of this.#graph.names) {
      if (this.#atWork.size === this.#bounds.maxConcurrency) break;
      if (!this.#isReady(node)) continue;
      const visit = (this.#visits.get(node) ?? 0) + 1;
      if (this.#steps === this.#bounds.maxSteps) return { bound: "max_steps", node };
      if (visit > this.#bounds.maxVisits) return { bound: "max_visits", node };
      this.#steps++;
      this.#visits.set(node, visit);
      const arrived = this.#taken(node);
      const depth = 1 + Math.max(...arrived.map((each) => each.depth));
      begun.push({ node, visit, input: valueOf(arrived), depth });
      this.#atWork.set(node, depth);
    }
    return begun;
  }

  /** Whether no node runs and values wait only at the end. */
  get isOver(): boolean {
    return this.#atWork.size === 0 && [...this.#arrived.keys()].every((node) => node === END);
  }

  /** The value that has arrived at the end so far. */
  get arrivedAtEnd(): JsonValue | undefined {
    const arrived = this.#arrived.get(END);
    return arrived && valueOf(arrived);
  }

  get visits(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#graph.names.map((name) => [name, this.#visits.get(name) ?? 0]));
  }

  #isReady(node: string): boolean {
    if (!this.#arrived.has(node)) return false;
    for (const other of this.#atWork.keys()) if (this.#graph.leadsTo(other, node)) return false;
    for (const other of this.#arrived.keys()) if (this.#goesBefore(other, node)) return false;
    return true;
  }

  #goesBefore(other: string, node: string): boolean {
    if (other === node || !this.#graph.leadsTo(other, node)) return false;
    const { names } = this.#graph;
    return !this.#graph.leadsTo(node, other) || names.indexOf(other) < names.indexOf(node);
  }

  #taken(node: string): readonly Arrival[] {
    const arrived = this.#arrived.get(node) ?? [];
    this.#arrived.delete(node);
    return arrived;
  }
}

/** Combines arrived values. A single value stays as it is; several become a list in the order of their transitions. */
function valueOf(arrived: readonly Arrival[]): JsonValue {
  const values = arrived.toSorted((one, other) => one.order - other.order).map(({ value }) => value);
  const [only] = values;
  return values.length === 1 && only !== undefined ? only : values;
}
