import { expect, test } from "vitest";
import { architectureNames, react, registerArchitecture } from "../../../src/agents/architectures/index.ts";
import { Agent } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { runAgent } from "./run-agent.ts";

const builtIn = [
  "react",
  "plan-and-execute",
  "rewoo",
  "reflexion",
  "self-refine",
  "tree-of-thoughts",
  "graph-of-thoughts",
  "deep-agent",
];

test.for(builtIn)("architecture: %j creates the built-in architecture without options", (name) => {
  const { architecture } = new Agent({ name: "thinker", model: scriptedModel([]), architecture: name });
  expect(architecture.name).toBe(name);
  expect(architecture.declaredWorkers()).toEqual({});
});

test("registerArchitecture() makes an architecture available by name, and refuses existing and blank names", async () => {
  registerArchitecture("echo", () => ({
    name: "echo",
    // eslint-disable-next-line require-yield
    run: async function* echo(session, _deps, prompt) {
      session.output = prompt;
    },
    declaredWorkers: () => ({}),
  }));
  expect(architectureNames()).toEqual([...builtIn, ...architectureNames().slice(builtIn.length)]);
  expect(architectureNames()).toContain("echo");
  const { result } = await runAgent({ architecture: "echo", model: scriptedModel([]) }, "Hello");
  expect(result.output).toBe("Hello");
  for (const name of ["rewoo", "echo"])
    expect(() => registerArchitecture(name, () => react())).toThrow(`architecture ${name} already exists`);
  expect(() => registerArchitecture(" ", () => react())).toThrow("the name of an architecture is empty");
});

test("a team architecture cannot be chosen or registered by its name", () => {
  expect(() => new Agent({ name: "desk", model: scriptedModel([]), architecture: "router" })).toThrow(
    "architecture router needs its agents: give architecture: router({ routes })",
  );
  expect(() => registerArchitecture("actor-critic", () => react())).toThrow("already");
});
