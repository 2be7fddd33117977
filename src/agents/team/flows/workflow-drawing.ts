import { END, START, type WorkflowGraph } from "./workflow-graph.ts";

/** Draws the graph as a Mermaid flowchart: agents as boxes, functions as rounded boxes, routed edges dotted. */
export function mermaidOf(graph: WorkflowGraph): string {
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
