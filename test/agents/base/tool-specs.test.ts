import { expect, it } from "vitest";
import { tool } from "../../../src/entries/index.ts";
import type { Tool } from "../../../src/kernel/index.ts";
import { ToolSpecs } from "../../../src/agents/base/tool-specs.ts";

function named(name: string, description = name): Tool {
  return tool({ name, description, inputSchema: { type: "object" }, execute: () => "" });
}

it("ToolSpecs returns the same list object as long as the tools are equal", () => {
  const [look, write] = [named("look"), named("write")];
  const specs = new ToolSpecs([look, write]);
  const first = specs.of([look, write]);
  expect(first).toEqual(
    [look, write].map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
  );
  expect(specs.of([look, write])).toBe(first);
});

it.each([
  ["an added tool", (tools: Tool[]) => [...tools, named("fetch")]],
  ["a removed tool", (tools: Tool[]) => tools.slice(1)],
  ["a different order", (tools: Tool[]) => tools.toReversed()],
  [
    "a different description",
    ([look, ...tools]: Tool[]) => [named(look?.name ?? "", "looks again"), ...tools],
  ],
])("ToolSpecs returns a new list for %s", (_, change) => {
  const tools = [named("look"), named("write")];
  const specs = new ToolSpecs(tools);
  const first = specs.of(tools);
  const changed = change(tools);
  expect(specs.of(changed)).not.toBe(first);
  expect(specs.of(changed).map(({ name, description }) => `${name}: ${description}`)).toEqual(
    changed.map(({ name, description }) => `${name}: ${description}`),
  );
});

it("ToolSpecs keeps the first of several tools with the same name", () => {
  const [look, other, write] = [named("look"), named("look", "looks otherwise"), named("write")];
  const specs = new ToolSpecs([write]);
  const told = specs.of([look, write, other]);
  expect(told.map(({ name, description }) => `${name}: ${description}`)).toEqual([
    "look: look",
    "write: write",
  ]);
  expect(specs.of([look, write, other])).toBe(told);
  expect(specs.of([look, write])).not.toBe(told);
});
