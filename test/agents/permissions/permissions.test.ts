import { describe, expect, test } from "vitest";
import { inMemoryApprovals, permissions, type PermissionsOptions } from "../../../src/index.ts";
import { Fault, formatAgentId, type Tool } from "../../../src/kernel/index.ts";
import { gatedCall, type CallOptions } from "../gate/gated-call.ts";

function decide(options: PermissionsOptions, call: CallOptions = {}): string {
  const { call: toolCall, tool, facts } = gatedCall(call);
  return permissions(options).check(toolCall, tool, facts).decision;
}

describe("permissions", () => {
  test("deny beats ask beats allow beats mode, whatever the order they are written in", () => {
    const all = { allow: ["look"], ask: ["look"], deny: ["look"], mode: "bypass" } as const;
    expect(decide(all)).toBe("deny");
    expect(decide({ ...all, deny: [] })).toBe("ask");
    expect(decide({ ...all, deny: [], ask: [] })).toBe("allow");
    expect(decide({ allow: ["look"] }, { tool: { risk: "critical" } })).toBe("allow");
  });

  test.for([
    { tool: { risk: "safe", destructive: false }, decisions: ["allow", "allow", "allow"] },
    { tool: { risk: "high", destructive: false }, decisions: ["allow", "allow", "allow"] },
    { tool: { risk: "high", destructive: true }, decisions: ["ask", "ask", "allow"] },
    { tool: { risk: "high", destructive: true, edits: true }, decisions: ["ask", "allow", "allow"] },
    { tool: { risk: "critical", destructive: true, edits: true }, decisions: ["ask", "ask", "allow"] },
    { tool: { risk: "critical", destructive: false }, decisions: ["ask", "ask", "allow"] },
  ] as const)("where no rule fits, the mode decides by the tool's facts: $tool", ({ tool, decisions }) => {
    const modes = ["default", "acceptEdits", "bypass"] as const;
    expect(modes.map((mode) => decide({ mode }, { tool }))).toEqual(decisions);
  });

  test("fails closed: facts a tool does not state count as the worst", () => {
    const unknown = (missing: readonly (keyof Tool)[]) =>
      Object.fromEntries(missing.map((key) => [key, undefined])) as unknown as Partial<Tool>;
    expect(decide({}, { tool: unknown(["destructive"]) })).toBe("ask");
    expect(decide({}, { tool: unknown(["risk"]) })).toBe("ask");
    expect(decide({ mode: "acceptEdits" }, { tool: unknown(["destructive", "edits"]) })).toBe("ask");
  });

  test("a rule names a tool, a pattern of names, or arguments", () => {
    const mcp: PermissionsOptions = { deny: ["mcp.*"] };
    expect(decide(mcp, { toolName: "mcp.files.write" })).toBe("deny");
    expect(decide(mcp, { toolName: "mcpXfiles" })).toBe("allow");
    const home: PermissionsOptions = {
      deny: [{ tool: "write_*", when: (input) => JSON.stringify(input).includes("/etc") }],
    };
    expect(decide(home, { toolName: "write_file", input: { path: "/etc/passwd" } })).toBe("deny");
    expect(decide(home, { toolName: "write_file", input: { path: "notes" } })).toBe("allow");
  });

  test("fails closed: a predicate that throws or does not say yes or no allows nothing and bans", () => {
    const broken = (): boolean => {
      throw new Error("broken");
    };
    const late = (async () => true) as unknown as () => boolean;
    const critical = { tool: { risk: "critical" } } as const;
    for (const when of [broken, late]) {
      expect(decide({ deny: [{ tool: "*", when }] })).toBe("deny");
      expect(decide({ ask: [{ tool: "*", when }] })).toBe("ask");
      expect(decide({ allow: [{ tool: "*", when }] }, critical)).toBe("ask");
    }
  });

  test("a user's rules are a wall: nobody else is judged by them, and nobody in particular is somebody of their own", () => {
    const options: PermissionsOptions = {
      deny: ["send"],
      users: { ada: { allow: ["*"], mode: "bypass" }, null: { allow: ["*"] } },
      anonymous: { deny: ["*"] },
    };
    const critical = { tool: { risk: "critical" } } as const;
    expect(decide(options, { userId: "ada", ...critical })).toBe("allow");
    expect(decide(options, { userId: "bob", ...critical })).toBe("ask");
    expect(decide(options, { userId: null, ...critical })).toBe("deny");
    expect(decide(options, { userId: "null", ...critical })).toBe("allow");
    expect(decide(options, { userId: "ada", toolName: "send" })).toBe("deny");
    expect(decide(options, { userId: "toString", ...critical })).toBe("ask");
  });

  test("says what is wrong with its options", () => {
    const refused = (options: unknown) => () => permissions(options as PermissionsOptions);
    expect(refused({ mode: "yolo" })).toThrow(Fault);
    expect(refused({ mode: "yolo" })).toThrow(
      /invalid mode "yolo" of permissions: expected one of default, acceptEdits, bypass/u,
    );
    expect(refused({ allow: [""] })).toThrow(/write a tool name, or \* for all tools/u);
    expect(refused({ onAsk: true })).toThrow(/invalid onAsk .*: expected "wait", a function, or no value/u);
    expect(refused({ deny: [{ tool: "x", when: "always" }] })).toThrow(/expected a function/u);
  });
});

test("remember_cache_is_keyed_per_user: and per tenant, agent and tool, with nobody apart from a user called null", () => {
  const memory = inMemoryApprovals();
  const [agentId, other] = [formatAgentId({ name: "scout" }), formatAgentId({ name: "other" })];
  const approval = { tenantId: null, userId: null, agentId, toolName: "send" };
  memory.add(approval);
  expect(memory.has(approval)).toBe(true);
  for (const name of ["null", "ada", ""]) {
    expect(memory.has({ ...approval, userId: name })).toBe(false);
    expect(memory.has({ ...approval, tenantId: name })).toBe(false);
  }
  expect(memory.has({ ...approval, agentId: other })).toBe(false);
  expect(memory.has({ ...approval, toolName: "sends" })).toBe(false);
  memory.delete(approval);
  expect(memory.has(approval)).toBe(false);
});
