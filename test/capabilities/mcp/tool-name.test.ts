import fc from "fast-check";
import { expect, it } from "vitest";
import { toolNames } from "../../../src/capabilities/mcp/tool-name.ts";

it("toolNames() keeps a unique tool name and adds the server's name to the others", () => {
  const names = toolNames([
    { server: "github", tool: "search" },
    { server: "github", tool: "open_issue" },
    { server: "web", tool: "search" },
    { server: "web", tool: "pages.read" },
  ]);
  expect(names).toEqual(["github__search", "open_issue", "web__search", "pages_read"]);
});

it("toolNames() gives every tool a unique name that every provider accepts, and always the same one", () => {
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
