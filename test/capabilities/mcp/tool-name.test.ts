import fc from "fast-check";
import { expect, it } from "vitest";
import { toolNames } from "../../../src/capabilities/mcp/mcp-servers.ts";

it("toolNames() returns mcp__<server>__<tool> and replaces characters that providers do not accept", () => {
  const names = toolNames([
    { server: "github", tool: "search" },
    { server: "web", tool: "search" },
    { server: "web", tool: "pages.read" },
    { server: "web", tool: "1\u0000\u001B[2J" },
  ]);
  expect(names).toEqual([
    "mcp__github__search",
    "mcp__web__search",
    "mcp__web__pages_read",
    "mcp__web__1___2J",
  ]);
});

it("toolNames() cuts a name of more than 64 characters and ends it with a hash of the whole name", () => {
  const long = "a".repeat(80);
  const [one = "", other = "", exact] = toolNames([
    { server: "web", tool: `${long}1` },
    { server: "web", tool: `${long}2` },
    { server: "web", tool: "b".repeat(54) },
  ]);
  expect(one).toMatch(/^mcp__web__a{45}_[0-9a-f]{8}$/u);
  expect(other).toMatch(/^mcp__web__a{45}_[0-9a-f]{8}$/u);
  expect(one).not.toBe(other);
  expect(exact).toBe(`mcp__web__${"b".repeat(54)}`);
  expect(toolNames([{ server: "web", tool: `${long}2` }])).toEqual([other]);
});

it("toolNames() lets a tool whose name needs no change keep it, whatever names other tools have", () => {
  const [plain, altered = ""] = toolNames([
    { server: "web", tool: "x_y" },
    { server: "web", tool: "x.y" },
  ]);
  expect(plain).toBe("mcp__web__x_y");
  expect(altered).toMatch(/^mcp__web__x_y_[0-9a-f]{8}$/u);
  const taken = altered.slice("mcp__web__".length);
  const names = toolNames(["x.y", taken, "x_y"].map((tool) => ({ server: "web", tool })));
  expect(names.slice(1)).toEqual([altered, "mcp__web__x_y"]);
  expect(new Set(names).size).toBe(3);
});

it("toolNames() gives every tool a unique name that every provider accepts, and always the same one", () => {
  const remote = fc.record({
    server: fc.constantFrom("a", "b", "a_b", "a-b"),
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
      for (const [at, name] of names.entries()) {
        expect(name).toMatch(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/);
        expect(name.startsWith(`mcp__${list[at]?.server}__`)).toBe(true);
      }
      expect(toolNames(list.toReversed())).toEqual(names.toReversed());
    }),
  );
});
