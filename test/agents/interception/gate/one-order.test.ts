import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { tool, type AgentOptions } from "../../../../src/entries/index.ts";
import type { Extension, Guardrail, HookRegistry } from "../../../../src/kernel/index.ts";
import type { Layer } from "../../../../src/entries/middleware.ts";
import { resultsIn, runAlone, worker } from "../../company.ts";

/** The words by which a row of the documented order is recognised, in the order that the pipeline promises. */
const order = [
  ["Call limit", "received"],
  ["repairToolCall", "received"],
  ["Tools of", "received"],
  ["Parse", "received"],
  ["preTool", "before"],
  ["tool_call", "before"],
  ["beforeCall", "before"],
  ["permissions", "before"],
  ["A person", "before"],
  ["Function middleware", "around"],
  ["tool_result", "after"],
  ["afterCall", "after"],
  ["postTool", "after"],
] as const;

/** The rows of the table in the documentation: the check, and whether it is asked before or after the call. */
function documentedOrder(): string[][] {
  const page = readFileSync(new URL("../../../../docs/guides/middleware.md", import.meta.url), "utf8");
  const [section = ""] = page.split("### The entries of a tool call").slice(1);
  const [table = ""] = section.split("\n#");
  const rows = table.split("\n").filter((line) => /^\| \d+ \|/u.test(line));
  return rows.map((row) => {
    const [entry = "", phase = ""] = row.split("|").slice(2, 4);
    const words = order.find(([known]) => entry.includes(known))?.[0] ?? entry;
    return [words, phase.trim()];
  });
}

const calling = (...inputs: readonly unknown[]) => ({
  toolCalls: inputs.map((input) => ({ name: "look", input: input as never })),
});

const other = tool({
  name: "other",
  description: "Does nothing",
  inputSchema: { type: "object", properties: {} },
  execute: () => "other",
});

/** Options of an agent with every kind of check. Each check records that it was asked. */
function watched(noted: string[]): Partial<AgentOptions> {
  const note = (what: string): undefined => void noted.push(what);
  const look = tool({
    name: "look",
    description: "Looks",
    inputSchema: z.object({ town: z.string().transform((town) => (note("Parse"), town)) }),
    execute: ({ town }) => (note("body"), `rain in ${town}`),
  });
  const toolHooks: HookRegistry = { preTool: () => note("preTool"), postTool: () => note("postTool") };
  const extension: Extension = {
    name: "extension",
    setup: (api) => {
      api.on("tool_call", () => note("tool_call"));
      api.on("tool_result", () => note("tool_result"));
    },
  };
  const guardrail: Guardrail = {
    name: "guardrail",
    beforeCall: () => (note("beforeCall"), { decision: "allow" }),
    afterCall: () => (note("afterCall"), { decision: "allow" }),
  };
  const layer = (name: string): Layer => ({
    name,
    function: async (_context, next) => {
      note(`Function middleware: ${name}`);
      await next();
      note(`Function middleware: ${name} after`);
    },
  });
  return {
    tools: [look, other],
    maxToolCallsPerTurn: 1,
    repairToolCall: () => (note("repairToolCall"), { toolName: "look", input: { town: "Sens" } }),
    toolHooks,
    extensions: [extension],
    guardrails: [guardrail],
    permissions: {
      check: () => (note("permissions"), { decision: "ask", reason: "asks" }),
      onAsk: () => (note("A person"), { decision: "approved" }),
    },
    middleware: [layer("outer"), layer("inner")],
  };
}

describe("the order of the checks of a tool call", () => {
  test("J7: a tool call of an agent with every kind of check passes the checks in the documented order", async () => {
    expect(documentedOrder()).toEqual(order);
    const noted: string[] = [];
    const { agent, model } = worker("clerk", [calling({ town: 1 }), "Done."], watched(noted));
    await runAlone(agent);
    expect(resultsIn(model)).toEqual(["rain in Sens"]);
    expect(noted).toEqual([
      "repairToolCall",
      "Parse",
      "preTool",
      "tool_call",
      "beforeCall",
      "permissions",
      "A person",
      "Function middleware: outer",
      "Function middleware: inner",
      "body",
      "Function middleware: inner after",
      "Function middleware: outer after",
      "tool_result",
      "afterCall",
      "postTool",
    ]);
    // The call limit and the tools of a turn call no code of the agent; the next two tests show where they are.
    const silent = ["Call limit", "Tools of"];
    const seen = noted.filter((what) => what !== "body").map((what) => what.split(":")[0]);
    expect([...new Set(seen)]).toEqual(
      order.map(([words]) => words).filter((words) => !silent.includes(words)),
    );
  });

  test("a call beyond the limit of its turn is answered before repairToolCall sees it", async () => {
    const noted: string[] = [];
    const { agent, model } = worker(
      "clerk",
      [calling({ town: "Sens" }, { town: 2 }), "Done."],
      watched(noted),
    );
    await runAlone(agent);
    expect(resultsIn(model)).toEqual([
      "rain in Sens",
      expect.stringContaining("only the first 1 tool calls"),
    ]);
    expect(noted).not.toContain("repairToolCall");
  });

  test("the tools that prepareStep chose apply to the repaired call, before its arguments are parsed and judged", async () => {
    const noted: string[] = [];
    const { agent, model } = worker("clerk", [calling({ town: 1 }), "Done."], {
      ...watched(noted),
      prepareStep: () => ({ tools: ["other"] }),
    });
    await runAlone(agent);
    expect(resultsIn(model)).toEqual([expect.stringContaining("look may not be called in this turn")]);
    expect(noted).toEqual(["repairToolCall"]);
  });

  test("an agent with nothing configured has an empty pipeline of checks for tool calls", () => {
    expect(worker("clerk", ["Done."], {}).agent.callPath).toBeUndefined();
  });
});

describe("the meaning of an error of a check", () => {
  const fails = (): never => {
    throw new Error("boom");
  };
  const extension = (event: "tool_call" | "tool_result"): readonly Extension[] => [
    { name: "e", setup: (api) => api.on(event, fails) },
  ];
  const hooks = (changes: Partial<HookRegistry>): HookRegistry => ({
    preTool: () => undefined,
    postTool: () => undefined,
    ...changes,
  });
  const done = { result: "rain", executed: 1, denied: 0 };
  const denied = (result: string) => ({ result: `error: ${result}`, executed: 0, denied: 1 });

  test.each<[string, Partial<AgentOptions>, object, readonly string[]]>([
    [
      "preTool",
      { toolHooks: hooks({ preTool: fails }) },
      denied("[denied: a hook failed: boom]"),
      ["hook_error"],
    ],
    [
      "tool_call",
      { extensions: extension("tool_call") },
      denied("[denied: the extension failed: boom]"),
      ["extension_error"],
    ],
    [
      "beforeCall",
      { guardrails: [{ name: "g", beforeCall: fails }] },
      denied("[denied: the guardrail failed (internal), so its decision is unknown]"),
      ["guardrail_error"],
    ],
    [
      'beforeCall with onError: "allow"',
      { guardrails: [{ name: "g", onError: "allow", beforeCall: fails }] },
      done,
      ["guardrail_error"],
    ],
    ["permissions", { permissions: { check: fails } }, denied("[denied: permissions failed: boom]"), []],
    [
      "an approval handler",
      { permissions: { check: () => ({ decision: "ask", reason: "asks" }), onAsk: fails } },
      { result: "error: [denied: the approval handler failed: boom]", executed: 0, denied: 0 },
      [],
    ],
    [
      "function middleware",
      { middleware: [{ name: "m", function: async () => fails() }] },
      { result: "error: boom", executed: 0, denied: 0 },
      [],
    ],
    [
      "tool_result",
      { extensions: extension("tool_result") },
      { ...done, result: "error: [withheld: an extension failed to process this result]" },
      ["extension_error"],
    ],
    ["afterCall", { guardrails: [{ name: "g", afterCall: fails }] }, done, ["guardrail_error"]],
    [
      'afterCall with onError: "block"',
      { guardrails: [{ name: "g", onError: "block", afterCall: fails }] },
      {
        result:
          "error: [withheld by the guardrail g: the guardrail failed (internal), so its decision is unknown]",
        executed: 1,
        denied: 0,
      },
      ["guardrail_error"],
    ],
    ["postTool", { toolHooks: hooks({ postTool: fails }) }, done, ["hook_error"]],
  ])(
    "S4: an error of %s has its own meaning for the tool call, and the run continues",
    async (_kind, options, expected, reported) => {
      let executed = 0;
      const look = tool({
        name: "look",
        description: "Looks",
        inputSchema: { type: "object", properties: {} },
        execute: () => (executed++, "rain"),
      });
      const { agent, model } = worker("clerk", [calling({}), "Done."], { tools: [look], ...options });
      const { events, result } = await runAlone(agent);
      const types = events.map(({ type }) => type);
      const count = types.filter((type) => type === "permission_deny").length;
      expect({ result: resultsIn(model)[0], executed, denied: count }).toEqual(expected);
      expect(types.filter((type) => type.endsWith("_error"))).toEqual(reported);
      expect(result.status).toBe("completed");
    },
  );
});
