import fc from "fast-check";
import { expect, it } from "vitest";
import { toolNames } from "../../../src/capabilities/mcp/tool-name.ts";

it("calls a tool by its own name where no other has it, and by its server's as well otherwise", () => {
  const names = toolNames([
    { server: "github", tool: "search" },
    { server: "github", tool: "open_issue" },
    { server: "web", tool: "search" },
    { server: "web", tool: "pages.read" },
  ]);
  expect(names).toEqual(["github__search", "open_issue", "web__search", "pages_read"]);
});

it("gives every tool a name of its own that every provider takes, the same each time", () => {
  const remote = fc.record({
    server: fc.constantFrom("a", "b", "a__b"),
    tool: fc.oneof(fc.constantFrom("x", "b__x", "x.y", "x/y", "x_y", "1", ""), fc.string({ maxLength: 90 })),
  });
  const tools = fc.uniqueArray(remote, {
    selector: ({ server, tool }) => `${server}\n${tool}`,
    maxLength: 12,
  });
  fc.assert(
    fc.property(tools, (list) => {
      const names = toolNames(list);
      expect(new Set(names).size).toBe(list.length);
      for (const name of names) expect(name).toMatch(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/);
      expect(toolNames(list)).toEqual(names);
    }),
  );
});
