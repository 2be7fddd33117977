import { describe, expect, test } from "vitest";
import { END, START, Graph } from "../../../../src/entries/index.ts";
import { type GraphOptions } from "../../../../src/assembly/flows.ts";
import { type HostedAgent } from "../../../../src/kernel/index.ts";
import { mark, marks, speaker } from "./flow-run.ts";

describe("the validation of a graph", () => {
  const make = (options: Partial<Omit<GraphOptions, "name">>): Graph =>
    new Graph({
      name: "w",
      nodes: marks("a", "b"),
      edges: [
        [START, "a"],
        ["a", "b"],
        ["b", END],
      ],
      ...options,
    });

  test.for<{ what: string; options: Partial<Omit<GraphOptions, "name">>; says: string }>([
    { what: "no nodes", options: { nodes: {} }, says: "has no nodes" },
    {
      what: "a node with the reserved name END",
      options: { nodes: marks("a", "END") },
      says: "a node named END, which is a reserved name",
    },
    { what: "a node name with a space", options: { nodes: marks("a b") }, says: "1 to 64 letters" },
    {
      what: "a node that is neither an agent nor a function",
      options: { nodes: { a: 7 as unknown as HostedAgent, b: mark("b") } },
      says: "neither an agent nor a function",
    },
    {
      what: "two agents with the same name",
      options: { nodes: { a: speaker("twin", "1").agent, b: speaker("twin", "2").agent } },
      says: "two agents named twin",
    },
    {
      what: "an edge from an unknown node",
      options: { edges: [["z", "a"]] },
      says: "the edge z -> a, but no node z",
    },
    { what: "an edge to an unknown node", options: { edges: [[START, "z"]] }, says: "but no node z" },
    { what: "an edge from END", options: { edges: [[END, "a"]] }, says: "but no node END" },
    {
      what: "a router with an unknown target",
      options: { routers: { a: { to: ["z"], choose: () => "z" } } },
      says: "the edge a -> z, but no node z",
    },
    {
      what: "a router without targets",
      options: { routers: { a: { to: [], choose: () => END } } },
      says: "a router at a without targets",
    },
    {
      what: "a router target that repeats an edge",
      options: { routers: { a: { to: ["b"], choose: () => "b" } } },
      says: "has the edge a -> b twice",
    },
    {
      what: "an unreachable node",
      options: {
        edges: [
          [START, "a"],
          ["a", END],
          ["b", END],
        ],
      },
      says: "no path from START to b",
    },
    {
      what: "a graph without a path to END",
      options: {
        edges: [
          [START, "a"],
          ["a", "b"],
          ["b", "a"],
        ],
      },
      says: "no path to END from a, b",
    },
    {
      what: "retries of a node with an unknown name",
      options: { nodes: { a: { execute: () => 1, retries: 3 } as never } },
      says: "retries",
    },
    {
      what: "an invalid retry of a node",
      options: { nodes: { a: { execute: () => 1, retry: { maxAttempts: 0 } } } },
      says: "invalid maxAttempts 0 of retry of node a of the graph",
    },
    { what: "maxSteps: 0", options: { maxSteps: 0 }, says: "invalid maxSteps 0 of the graph" },
    {
      what: "a fractional maxVisits",
      options: { maxVisits: 0.5 },
      says: "invalid maxVisits 0.5 of the graph",
    },
    {
      what: "a negative maxConcurrency",
      options: { maxConcurrency: -1 },
      says: "expected an integer from 1",
    },
  ])("a graph refuses $what at construction", ({ options, says }) => {
    expect(() => make(options)).toThrow(says);
  });

  test("an edge of a graph to a missing node is a type error and is refused at construction", () => {
    expect(
      () =>
        new Graph({
          name: "w",
          nodes: { a: mark("a") },
          edges: [
            [START, "a"],
            // @ts-expect-error there is no node b
            ["a", "b"],
          ],
        }),
    ).toThrow("but no node b");
  });

  test("toMermaid() draws agents of a graph as boxes, functions as rounded boxes and router targets as dotted edges", () => {
    const flow = new Graph({
      name: "w",
      nodes: { classify: speaker("c", "x").agent, end: mark("end") },
      edges: [
        [START, "classify"],
        ["end", END],
      ],
      routers: { classify: { to: ["end", END], choose: () => END } },
    });
    expect(flow.toMermaid()).toBe(
      [
        "flowchart TD",
        "  START([START])",
        '  n0["classify"]',
        '  n1("end")',
        "  END([END])",
        "  START --> n0",
        "  n1 --> END",
        "  n0 -.-> n1",
        "  n0 -.-> END",
      ].join("\n"),
    );
  });
});
