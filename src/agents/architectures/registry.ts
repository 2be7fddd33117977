import { Fault, type Architecture } from "../../kernel/index.ts";
import { deepAgent } from "./deep-agent.ts";
import { graphOfThoughts } from "./graph-of-thoughts.ts";
import { planAndExecute } from "./plan-and-execute.ts";
import { react } from "./react.ts";
import { reflexion } from "./reflexion.ts";
import { rewoo } from "./rewoo.ts";
import { selfRefine } from "./self-refine.ts";
import { treeOfThoughts } from "./tree-of-thoughts.ts";

/** Built-in architectures that need no options, by name. */
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

/** Team architectures, which need options, and how to create them. */
const teamUsages: Readonly<Record<string, string>> = {
  router: "router({ routes })",
  supervisor: "supervisor({ workers })",
  "actor-critic": "actorCritic({ actor, critic })",
  debate: "debate({ debaters })",
  swarm: "swarm({ peers })",
  blackboard: "blackboard({ agents })",
};

const registered = new Map<string, () => Architecture>();

/**
 * Registers an architecture under a name, for `new Agent({ architecture: name })`. Throws `already_exists` for the name
 * of a built-in architecture or one that is registered already.
 */
export function registerArchitecture(name: string, make: () => Architecture): void {
  if (Object.hasOwn(builtIn, name) || Object.hasOwn(teamUsages, name) || registered.has(name))
    throw new Fault("already_exists", `architecture ${name} already exists: choose another name`);
  if (name.trim() === "")
    throw new Fault("invalid_argument", "the name of an architecture is empty: give a name");
  registered.set(name, make);
}

/** Returns the names that `new Agent({ architecture })` accepts, the built-in ones first. */
export function architectureNames(): readonly string[] {
  return [...Object.keys(builtIn), ...registered.keys()];
}

/** Creates a new instance of the architecture with this name. */
export function createArchitecture(name: string): Architecture {
  const make = Object.hasOwn(builtIn, name) ? builtIn[name] : registered.get(name);
  if (make !== undefined) return make();
  if (Object.hasOwn(teamUsages, name))
    throw new Fault(
      "invalid_argument",
      `architecture ${name} needs its agents: give architecture: ${teamUsages[name]} instead of the name`,
    );
  throw new Fault(
    "not_found",
    `there is no architecture ${name}; there are: ${architectureNames().join(", ")}. Register your own with registerArchitecture`,
  );
}
