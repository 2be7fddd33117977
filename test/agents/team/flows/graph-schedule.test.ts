import fc from "fast-check";
import { expect, test } from "vitest";
import {
  END,
  START,
  GraphDefinition,
  type GraphEdge,
  type GraphRouter,
} from "../../../../src/agents/team/flows/graph-definition.ts";
import { GraphSchedule, type Visit } from "../../../../src/agents/team/flows/graph-schedule.ts";
import type { JsonValue } from "../../../../src/kernel/index.ts";
import { propertyRuns } from "../../../effort.ts";

const maxDepth = 6;

/** Random graphs of up to six nodes: edges lead to later nodes, routers to any node. */
const graphs = fc
  .record({
    size: fc.integer({ min: 1, max: 6 }),
    onward: fc.array(fc.boolean(), { minLength: 36, maxLength: 36 }),
    routed: fc.array(fc.boolean(), { minLength: 36, maxLength: 36 }),
    starts: fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }),
    salt: fc.nat(1_000),
  })
  .map(({ size, onward, routed, starts, salt }) => {
    const names = Array.from({ length: size }, (_, index) => `n${index}`);
    const edges: GraphEdge[] = names
      .filter((_, index) => index === 0 || starts[index] === true)
      .map((name) => [START, name]);
    const routers: Record<string, GraphRouter> = {};
    for (const [from, name] of names.entries()) {
      const on = (to: number): boolean => to > from && (to === from + 1 || onward[from * 6 + to] === true);
      const back = (to: number): boolean => !on(to) && routed[from * 6 + to] === true;
      edges.push(...names.filter((_, to) => on(to)).map((to) => [name, to] as const));
      if (from === size - 1) edges.push([name, END]);
      const targets = names.filter((_, to) => back(to));
      if (targets.length > 0) routers[name] = { to: targets, choose: () => [] };
    }
    return { graph: new GraphDefinition({ nodes: nodesOf(names), edges, routers }), salt };
  });

function nodesOf(names: readonly string[]): Record<string, () => JsonValue> {
  return Object.fromEntries(names.map((name) => [name, () => null]));
}

/**
 * Returns the depth of a visit, which follows from its input alone. `choice` selects no target of a router beyond
 * `maxDepth`.
 */
function depthOf(input: JsonValue): number {
  const values = Array.isArray(input) ? input : [input];
  return 1 + Math.max(...values.map(Number));
}

function choice(graph: GraphDefinition, salt: number, node: string, depth: number): readonly string[] {
  const to = graph.router(node)?.to ?? [];
  return depth > maxDepth
    ? []
    : to.filter((_, index) => (salt + depth * 7 + index * 3 + node.length) % 3 === 0);
}

function walked(graph: GraphDefinition, salt: number, maxConcurrency: number, next: (of: number) => number) {
  const schedule = new GraphSchedule(graph, { maxSteps: 10_000, maxVisits: 10_000, maxConcurrency });
  const visits: string[] = [];
  const atWork: Visit[] = [];
  schedule.pass(START, 0, []);
  for (;;) {
    const begun = schedule.begin();
    if ("bound" in begun) throw new Error(begun.bound);
    atWork.push(...begun);
    expect(atWork.length).toBeLessThanOrEqual(maxConcurrency);
    const [visit] = atWork.splice(next(atWork.length), 1);
    if (visit === undefined) break;
    visits.push(JSON.stringify(visit));
    const depth = depthOf(visit.input);
    schedule.pass(visit.node, depth, choice(graph, salt, visit.node, depth));
  }
  expect(schedule.isOver).toBe(true);
  return { visits: visits.toSorted(), end: schedule.arrivedAtEnd };
}

test("the visits of a graph and their inputs depend neither on the order in which nodes finish nor on maxConcurrency", () => {
  fc.assert(
    fc.property(
      graphs,
      fc.array(fc.nat(5), { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 1, max: 8 }),
      ({ graph, salt }, order, maxConcurrency) => {
        const inOrder = walked(graph, salt, 1, () => 0);
        let place = 0;
        const shuffled = walked(graph, salt, maxConcurrency, (of) => {
          const picked = order[place++ % order.length] ?? 0;
          return of === 0 ? 0 : picked % of;
        });
        expect(shuffled).toEqual(inOrder);
      },
    ),
    { numRuns: propertyRuns(500) },
  );
});
