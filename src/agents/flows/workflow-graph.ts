import { Fault, type HostedAgent, type JsonValue, type StepContext } from "../../kernel/index.ts";
import { refuseNamesakes } from "../namesakes.ts";

/** Where a workflow's input comes from. */
export const START = "START" as const;
/** Where its answer goes. */
export const END = "END" as const;

/** What a function that is a node is given besides its input. */
export interface NodeContext extends StepContext {
  /** The input as an agent would be told it. */
  readonly text: string;
  /** How often the node has begun, this time included. */
  readonly visit: number;
}

/**
 * A node's work as a function: a step of the journal, so done once, and its result JSON. J6: at least once, should the process die in
 * it; `idempotencyKey` is then the same.
 */
export type NodeFunction = (input: JsonValue, node: NodeContext) => JsonValue | Promise<JsonValue>;

/** An agent is told its input as a text: lists of texts with blank lines between, other values as JSON. */
export type WorkflowNode = HostedAgent | NodeFunction;

/** From one node to another; from `START`, to `END`. Several from one node: all are taken. */
export type WorkflowEdge<Name extends string = string> = readonly [
  from: Name | typeof START,
  to: Name | typeof END,
];

/** Where to go on from a node, decided by its value. Journaled, so asked once. */
export interface WorkflowRouter<Name extends string = string> {
  /** Everywhere it may lead. */
  readonly to: readonly (Name | typeof END)[];
  readonly choose: (
    value: JsonValue,
    /** The value as an agent would be told it. */
    text: string,
  ) =>
    | Name
    | typeof END
    | readonly (Name | typeof END)[]
    | Promise<Name | typeof END | readonly (Name | typeof END)[]>;
}

export interface WorkflowGraphOptions<Name extends string = string> {
  readonly nodes: Readonly<Record<Name, WorkflowNode>>;
  readonly edges: readonly WorkflowEdge<NoInfer<Name>>[];
  /** By the node they lead on from, or `START`. */
  readonly routers?: Readonly<Partial<Record<NoInfer<Name> | typeof START, WorkflowRouter<NoInfer<Name>>>>>;
}

/** A way from one node to another. */
export interface Way {
  readonly from: string;
  readonly to: string;
  /** A router decides whether it is taken. */
  readonly routed: boolean;
}

const nodeName = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;

/**
 * The nodes of a workflow and the ways between them, looked over when it is made: every name is known, every node can be reached, and
 * from every node there is a way to the end.
 */
export class WorkflowGraph {
  /** In the order of declaration. */
  readonly names: readonly string[];
  /** In the order of declaration, routers' after the edges. */
  readonly ways: readonly Way[];
  readonly #nodes: ReadonlyMap<string, WorkflowNode>;
  readonly #routers: ReadonlyMap<string, WorkflowRouter>;
  readonly #reach: ReadonlyMap<string, ReadonlySet<string>>;

  constructor({ nodes, edges, routers = {} }: WorkflowGraphOptions) {
    this.#nodes = new Map(Object.entries(nodes));
    this.names = [...this.#nodes.keys()];
    this.#routers = new Map(
      Object.entries(routers).flatMap(([from, router]) => (router === undefined ? [] : [[from, router]])),
    );
    const routed = [...this.#routers].flatMap(([from, { to }]) =>
      to.map((each) => ({ from, to: each, routed: true })),
    );
    this.ways = [...edges.map(([from, to]) => ({ from, to, routed: false })), ...routed];
    this.#refuseNames();
    this.#refuseWays();
    this.#reach = new Map([START, ...this.names].map((from) => [from, this.#reachableFrom(from)]));
    this.#refuseIslands();
  }

  node(name: string): WorkflowNode {
    const node = this.#nodes.get(name);
    if (node === undefined) throw new Fault("not_found", `there is no node ${name} in the workflow`);
    return node;
  }

  router(from: string): WorkflowRouter | undefined {
    return this.#routers.get(from);
  }

  agents(): Readonly<Record<string, HostedAgent>> {
    const agents = [...this.#nodes].flatMap(([name, node]) =>
      typeof node === "function" ? [] : [[name, node] as const],
    );
    return Object.fromEntries(agents);
  }

  /** Whether what goes on at one node may come to another; to itself, only in a circle. */
  leadsTo(from: string, to: string): boolean {
    return this.#reach.get(from)?.has(to) ?? false;
  }

  /** Whether a node's value is the answer, whatever becomes of it: it leads nowhere but to the end. */
  answers(name: string): boolean {
    return this.#waysFrom(name).every(({ to }) => to === END);
  }

  #waysFrom(from: string): readonly Way[] {
    return this.ways.filter((way) => way.from === from);
  }

  #reachableFrom(from: string): ReadonlySet<string> {
    const reached = new Set<string>();
    const look = (at: string): void => {
      for (const { to } of this.#waysFrom(at)) {
        if (reached.has(to)) continue;
        reached.add(to);
        look(to);
      }
    };
    look(from);
    return reached;
  }

  #refuseNames(): void {
    if (this.names.length === 0) throw refused("has no nodes");
    for (const [name, node] of this.#nodes) {
      if (name === START || name === END) throw refused(`has a node named ${name}, which is taken`);
      if (!nodeName.test(name))
        throw refused(
          `has a node named ${JSON.stringify(name)}: it must be 1 to 64 letters, digits, and _ . -, starting with a letter or _`,
        );
      if (typeof node !== "function" && typeof node?.run !== "function")
        throw refused(`has a node ${name} that is neither an agent nor a function`);
    }
    refuseNamesakes("the workflow", Object.values(this.agents()));
  }

  #refuseWays(): void {
    const seen = new Set<string>();
    for (const { from, to } of this.ways) {
      const way = `${from} -> ${to}`;
      if (from !== START && !this.#nodes.has(from))
        throw refused(`has a way ${way}, and there is no node ${from}`);
      if (to !== END && !this.#nodes.has(to)) throw refused(`has a way ${way}, and there is no node ${to}`);
      if (seen.has(way)) throw refused(`has the way ${way} twice`);
      seen.add(way);
    }
    for (const [from, { to }] of this.#routers)
      if (to.length === 0)
        throw refused(`has a router at ${from} that leads nowhere: name its targets in to`);
  }

  #refuseIslands(): void {
    const lost = this.names.filter((name) => !this.leadsTo(START, name));
    if (lost.length > 0) throw refused(`cannot come from START to ${lost.join(", ")}`);
    const stuck = this.names.filter((name) => !this.leadsTo(name, END));
    if (stuck.length > 0) throw refused(`cannot come to END from ${stuck.join(", ")}`);
  }
}

function refused(why: string): Fault {
  return new Fault("invalid_argument", `the workflow ${why}`);
}
