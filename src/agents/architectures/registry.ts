import { Fault, type Architecture } from "../../kernel/index.ts";
import { deepAgent } from "./deep-agent.ts";
import { graphOfThoughts } from "./graph-of-thoughts.ts";
import { planAndExecute } from "./plan-and-execute.ts";
import { react } from "./react.ts";
import { reflexion } from "./reflexion.ts";
import { rewoo } from "./rewoo.ts";
import { selfRefine } from "./self-refine.ts";
import { treeOfThoughts } from "./tree-of-thoughts.ts";

/** Those that need nothing to be told. */
const builtIn: Readonly<Record<string, () => Architecture>> = {
  react: () => react(),
  "plan-and-execute": () => planAndExecute(),
  rewoo: () => rewoo(),
  reflexion: () => reflexion(),
  "self-refine": () => selfRefine(),
  "tree-of-thoughts": () => treeOfThoughts(),
  "graph-of-thoughts": () => graphOfThoughts(),
  "deep-agent": () => deepAgent(),
};

/** Those that must be told whom they set to work. */
const teamUsages: Readonly<Record<string, string>> = {
  router: "router({ routes })",
  supervisor: "supervisor({ workers })",
  "actor-critic": "actorCritic({ actor, critic })",
  debate: "debate({ debaters })",
  swarm: "swarm({ peers })",
  blackboard: "blackboard({ agents })",
};

const registered = new Map<string, () => Architecture>();

/** Makes an architecture of your own known by a name, for `new Agent({ architecture: name })`. Built-in names stay what they are. */
export function registerArchitecture(name: string, make: () => Architecture): void {
  if (Object.hasOwn(builtIn, name) || Object.hasOwn(teamUsages, name) || registered.has(name))
    throw new Fault("already_exists", `there is an architecture ${name} already: choose another name`);
  if (name.trim() === "") throw new Fault("invalid_argument", "an architecture's name is empty");
  registered.set(name, make);
}

/** What `new Agent({ architecture })` knows by name, built-in ones first. */
export function architectureNames(): readonly string[] {
  return [...Object.keys(builtIn), ...registered.keys()];
}

export function createArchitecture(name: string): Architecture {
  const make = Object.hasOwn(builtIn, name) ? builtIn[name] : registered.get(name);
  if (make !== undefined) return make();
  if (Object.hasOwn(teamUsages, name))
    throw new Fault(
      "invalid_argument",
      `${name} has to be told of its agents: give architecture: ${teamUsages[name]} in place of its name`,
    );
  throw new Fault(
    "not_found",
    `there is no architecture ${name}; there are: ${architectureNames().join(", ")}. Register yours with registerArchitecture`,
  );
}
