import {
  checkList,
  describeValue,
  Fault,
  is,
  optionTable,
  readProperty,
  requireNamed,
  stepRetry,
  type HostedAgent,
  type JsonValue,
  type OptionKinds,
  type StepContext,
  type StepOptions,
} from "../../../kernel/index.ts";
import { refuseDuplicateNames } from "../duplicate-names.ts";

/** The node that provides the graph's input. */
export const START = "START" as const;
/** The node whose value is the graph's answer. */
export const END = "END" as const;

/** The second argument of a function that is a node. */
export interface NodeContext extends StepContext {
  /** The input in the form of the text that an agent would receive. */
  readonly text: string;
  /** How often the node has started, including this time. */
  readonly visit: number;
}

/**
 * A node that is a function. It is a journaled step, so that it runs once; its result must be JSON. J6: if the
 * process dies while it runs, it runs again with the same `idempotencyKey`.
 */
export type NodeFunction = (input: JsonValue, node: NodeContext) => JsonValue | Promise<JsonValue>;

/**
 * A node that is a function, with options for the retries and the timeout of its step. Default: one attempt and no
 * timeout.
 */
export interface FunctionNode extends Pick<StepOptions, "retry" | "timeoutMs"> {
  readonly execute: NodeFunction;
}

/**
 * A node of a graph. An agent receives its input as text: lists of texts are joined by blank lines, other values are
 * serialised as JSON.
 */
export type GraphNode = HostedAgent | NodeFunction | FunctionNode;

/** An edge from a node or `START` to a node or `END`. All edges that leave a node are taken. */
export type GraphEdge<Name extends string = string> = readonly [
  from: Name | typeof START,
  to: Name | typeof END,
];

/** Chooses the next nodes by a node's value. The choice is journaled, so that the router is called only once. */
export interface GraphRouter<Name extends string = string> {
  /** All nodes that the router may choose. */
  readonly to: readonly (Name | typeof END)[];
  readonly choose: (
    value: JsonValue,
    /** The value in the form of the text that an agent would receive. */
    text: string,
  ) =>
    | Name
    | typeof END
    | readonly (Name | typeof END)[]
    | Promise<Name | typeof END | readonly (Name | typeof END)[]>;
}

export interface GraphDefinitionOptions<Name extends string = string> {
  readonly nodes: Readonly<Record<Name, GraphNode>>;
  readonly edges: readonly GraphEdge<NoInfer<Name>>[];
  /** The routers, by the node that they follow, or `START`. */
  readonly routers?: Readonly<Partial<Record<NoInfer<Name> | typeof START, GraphRouter<NoInfer<Name>>>>>;
}

/** A possible transition from one node to another. */
export interface Way {
  readonly from: string;
  readonly to: string;
  /** Whether a router decides if this transition is taken. */
  readonly routed: boolean;
}

const nodeName = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;

/**
 * The nodes of a graph and the transitions between them. The constructor checks that every name is known, that every
 * node can be reached, and that every node leads to the end.
 */
export class GraphDefinition {
  /** The names of the nodes, in the order of declaration. */
  readonly names: readonly string[];
  /** The transitions, in the order of declaration: edges first, then those of routers. */
  readonly ways: readonly Way[];
  readonly #nodes: ReadonlyMap<string, HostedAgent | NodeFunction>;
  readonly #stepOptions = new Map<string, Pick<StepOptions, "retry" | "timeoutMs">>();
  readonly #routers: ReadonlyMap<string, GraphRouter>;
  readonly #reach: ReadonlyMap<string, ReadonlySet<string>>;

  constructor({ nodes, edges, routers = {} }: GraphDefinitionOptions) {
    checkShape({ nodes, edges, routers });
    this.#nodes = new Map(Object.entries(nodes).map(([name, node]) => [name, this.#unwrapped(name, node)]));
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

  /** The retries and the timeout of the step of a function. */
  stepOptions(name: string): Pick<StepOptions, "retry" | "timeoutMs"> {
    return this.#stepOptions.get(name) ?? {};
  }

  node(name: string): HostedAgent | NodeFunction {
    const node = this.#nodes.get(name);
    if (node === undefined) throw new Fault("not_found", `node ${name} not found in the graph`);
    return node;
  }

  router(from: string): GraphRouter | undefined {
    return this.#routers.get(from);
  }

  agents(): Readonly<Record<string, HostedAgent>> {
    const agents = [...this.#nodes].flatMap(([name, node]) =>
      typeof node === "function" ? [] : [[name, node] as const],
    );
    return Object.fromEntries(agents);
  }

  /** Whether a value of one node can reach another. A node reaches itself only in a cycle. */
  leadsTo(from: string, to: string): boolean {
    return this.#reach.get(from)?.has(to) ?? false;
  }

  /** Whether a node's value is certain to be the answer, because the node leads only to the end. */
  answers(name: string): boolean {
    return this.#waysFrom(name).every(({ to }) => to === END);
  }

  /** Returns the function of a node that has options, and stores the options. */
  #unwrapped(name: string, node: GraphNode): HostedAgent | NodeFunction {
    if (!isFunctionNode(node)) return node;
    functionTable.read(`node ${name} of the graph`, node);
    const { execute, retry, timeoutMs } = node;
    this.#stepOptions.set(name, {
      ...(retry !== undefined && { retry }),
      ...(timeoutMs !== undefined && { timeoutMs }),
    });
    return execute;
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
      if (name === START || name === END) throw refused(`has a node named ${name}, which is a reserved name`);
      if (!nodeName.test(name))
        throw refused(
          `has a node with the invalid name ${JSON.stringify(name)}: expected 1 to 64 letters, digits, and _ . -, starting with a letter or _`,
        );
      if (typeof node !== "function" && typeof node?.run !== "function")
        throw refused(`has a node ${name} that is neither an agent nor a function`);
    }
    refuseDuplicateNames("the graph", Object.values(this.agents()));
  }

  #refuseWays(): void {
    const seen = new Set<string>();
    for (const { from, to } of this.ways) {
      const way = `${from} -> ${to}`;
      if (from !== START && !this.#nodes.has(from))
        throw refused(`has the edge ${way}, but no node ${from}${reserved(from)}`);
      if (to !== END && !this.#nodes.has(to))
        throw refused(`has the edge ${way}, but no node ${to}${reserved(to)}`);
      if (seen.has(way)) throw refused(`has the edge ${way} twice`);
      seen.add(way);
    }
    for (const [from, { to }] of this.#routers)
      if (to.length === 0) throw refused(`has a router at ${from} without targets; list them in \`to\``);
  }

  #refuseIslands(): void {
    const lost = this.names.filter((name) => !this.leadsTo(START, name));
    if (lost.length > 0)
      throw refused(
        `has no path from START to ${lost.join(", ")}; add an edge such as [START, "${lost[0]}"]`,
      );
    const stuck = this.names.filter((name) => !this.leadsTo(name, END));
    if (stuck.length > 0)
      throw refused(`has no path to END from ${stuck.join(", ")}; add an edge such as ["${stuck[0]}", END]`);
  }
}

const functionTable = optionTable({
  execute: is.callback(),
  retry: is.checkedBy((retry, _option, owner) => retry === false || stepRetry(retry, owner)),
  timeoutMs: is.number({ from: 1 }),
} satisfies OptionKinds<FunctionNode>);

/** Whether a node is a function with options. */
function isFunctionNode(node: GraphNode): node is FunctionNode {
  return (
    typeof readProperty(node, "execute") === "function" && typeof readProperty(node, "run") !== "function"
  );
}

/** Throws for options in the form of another library, such as edges that are objects. */
function checkShape({ nodes, edges, routers }: Record<keyof GraphDefinitionOptions, unknown>): void {
  requireNamed("nodes of the graph", nodes, "agents and functions", "nodes: { writer: agent }");
  requireNamed(
    "routers of the graph",
    routers,
    "routers",
    'routers: { writer: { to: ["editor", END], choose } }',
  );
  for (const [from, router] of Object.entries(routers as object)) {
    if (router === undefined) continue;
    if (Array.isArray(readProperty(router, "to")) && typeof readProperty(router, "choose") === "function")
      continue;
    throw refused(`has an invalid router at ${from}: expected { to: [node], choose: (value, text) => node }`);
  }
  const pair = 'use edges: [[START, "writer"], ["writer", END]]';
  checkList("edges of the graph", edges ?? {}, pair);
  for (const [index, edge] of (edges as readonly unknown[]).entries()) {
    if (Array.isArray(edge) && edge.length === 2) continue;
    throw refused(
      `has an invalid edge ${index + 1}: expected a pair of names, not ${describeValue(edge)}; ${pair}`,
    );
  }
}

/** Returns what to use in place of a name that other libraries reserve. Empty for other names. */
function reserved(name: string): string {
  if (/^(?:__)?start(?:__)?$/iu.test(name)) return '; use START, imported from "reeve"';
  return /^(?:__)?end(?:__)?$/iu.test(name) ? '; use END, imported from "reeve"' : "";
}

function refused(why: string): Fault {
  return new Fault("invalid_argument", `the graph ${why}`);
}
