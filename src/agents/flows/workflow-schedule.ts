import type { JsonValue } from "../../kernel/index.ts";
import { END, type WorkflowGraph } from "./workflow-graph.ts";

export interface WorkflowBounds {
  /** Of all nodes together. 100 unless told. */
  readonly maxSteps: number;
  /** Of each node. 25 unless told. */
  readonly maxVisits: number;
  /** Nodes at work at once. 8 unless told. */
  readonly maxConcurrency: number;
}

/** A node that begins. */
export interface Visit {
  readonly node: string;
  /** From 1. */
  readonly visit: number;
  readonly input: JsonValue;
  /** How many came one after another until it did: it builds upon those of lower ones. From 1. */
  readonly depth: number;
}

/** A bound was met, and no node begins any more. */
export interface BoundMet {
  readonly bound: "max_steps" | "max_visits";
  readonly node: string;
}

interface Arrival {
  /** Of the way it came by. */
  readonly order: number;
  readonly value: JsonValue;
  readonly depth: number;
}

/**
 * Who may begin with what, as values come and go. Pure: the caller does the work.
 *
 * A node begins once something has come to it and nothing more can: no node at work, and none that something has come to, leads to it. In
 * a circle where several wait for each other, the one declared first begins. So what each visit is given depends on the values alone and
 * never on who was quicker, and a replay comes by the same visits in whatever order they end.
 */
export class WorkflowSchedule {
  readonly #graph: WorkflowGraph;
  readonly #bounds: WorkflowBounds;
  readonly #arrived = new Map<string, Arrival[]>();
  /** With the depth of its visit. */
  readonly #atWork = new Map<string, number>();
  readonly #visits = new Map<string, number>();
  #steps = 0;

  constructor(graph: WorkflowGraph, bounds: WorkflowBounds) {
    this.#graph = graph;
    this.#bounds = bounds;
  }

  /** A node is done, or the input is there: its value goes along the edges and along the ways its router chose. */
  pass(from: string, value: JsonValue, chosen: readonly string[]): void {
    const depth = this.#atWork.get(from) ?? 0;
    this.#atWork.delete(from);
    for (const [order, way] of this.#graph.ways.entries()) {
      if (way.from !== from || (way.routed && !chosen.includes(way.to))) continue;
      const arrived = this.#arrived.get(way.to) ?? [];
      this.#arrived.set(way.to, [...arrived, { order, value, depth }]);
    }
  }

  /** Those that begin now; they are at work until `pass`ed on from. */
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

  /** Nothing is at work, and nothing waits but at the end. */
  get isOver(): boolean {
    return this.#atWork.size === 0 && [...this.#arrived.keys()].every((node) => node === END);
  }

  /** What came to the end so far. */
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

/** One value as it is, several as a list in the order of their ways. */
function valueOf(arrived: readonly Arrival[]): JsonValue {
  const values = arrived.toSorted((one, other) => one.order - other.order).map(({ value }) => value);
  const [only] = values;
  return values.length === 1 && only !== undefined ? only : values;
}
