import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Agent, permissions, tool, type ToolHooks, toolHooks } from "../../../../src/entries/index.ts";
import { type PermissionsOptions } from "../../../../src/agents/interception/permissions/permissions.ts";
import type {
  ApprovalRequest,
  JsonValue,
  RuleDetails,
  RunHandle,
  Tool,
} from "../../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";
import { openPlace, places, untilTold } from "./place.ts";

const reads: ScriptStep = ({ messages }) => {
  const last = messages.at(-1);
  const [part] = last?.role === "tool" ? last.content : [];
  return part?.output.type === "text" ? part.output.text : "nothing";
};

const run: string[] = [];

/** A tool whose schema changes its arguments: it decodes the path and fills in a default. */
function opener(decode: (path: string) => string = decodeURIComponent): Tool {
  return tool({
    name: "open",
    description: "Opens a file",
    inputSchema: z.object({ path: z.string().transform(decode), mode: z.string().default("r") }),
    execute: ({ path, mode }) => {
      run.push(`${path} ${mode}`);
      return `opened ${path}`;
    },
  });
}

const open = (input: JsonValue): ScriptStep => ({ toolCalls: [{ name: "open", input }] });

function agentWith(
  rules: PermissionsOptions,
  script: readonly ScriptStep[],
  more: { readonly tools?: readonly Tool[]; readonly toolHooks?: ToolHooks } = {},
): Agent {
  const { tools = [opener()], ...others } = more;
  return new Agent({
    name: "reader",
    model: scriptedModel(script),
    tools,
    permissions: permissions(rules),
    ...others,
  });
}

async function question(handle: RunHandle): Promise<ApprovalRequest> {
  return (await untilTold(handle, "approval_request")).data;
}

describe.each(places)("arguments of a tool call that the schema changes, with the %s store", (name) => {
  test("a permission rule receives the arguments as parsed and as sent, and judges what is executed", async () => {
    run.length = 0;
    const place = await openPlace(name);
    const seen: { input: unknown; details: RuleDetails }[] = [];
    const isSecret = (input: unknown) => (input as { path: string }).path.startsWith("/etc/");
    const rules: PermissionsOptions = {
      deny: [
        {
          tool: "open",
          when: (input, _facts, details) => {
            seen.push({ input, details });
            return isSecret(input);
          },
        },
      ],
    };
    const agent = agentWith(rules, [open({ path: "%2Fetc%2Fshadow" }), reads]);
    const result = await (await (await place.restart()).submit(agent, "Open it.")).result();
    expect(result.output).toBe("[denied: the rule for open forbids it]");
    expect(run).toEqual([]);
    expect(seen).toEqual([
      {
        input: { path: "/etc/shadow", mode: "r" },
        details: { sent: { path: "%2Fetc%2Fshadow" }, toolName: "open", kind: "deny", folder: null },
      },
    ]);
  });

  test("a hook and a guardrail see the parsed arguments that are executed", async () => {
    const place = await openPlace(name);
    const hooks = toolHooks();
    const seen: JsonValue[] = [];
    hooks.onPreTool(({ input }) => void seen.push(input));
    const agent = agentWith({}, [open({ path: "%61" }), reads], { toolHooks: hooks }).with({
      guardrails: [
        {
          name: "look",
          beforeCall: ({ input }, { sent }) => {
            seen.push(input, sent);
            return { decision: "allow" };
          },
        },
      ],
    });
    await (await (await place.restart()).submit(agent, "Open it.")).result();
    expect(seen).toEqual([{ path: "a", mode: "r" }, { path: "a", mode: "r" }, { path: "%61" }]);
  });

  test("a person who approves a call sees its arguments as sent and as parsed, after a restart too", async () => {
    run.length = 0;
    const place = await openPlace(name);
    const rules: PermissionsOptions = { ask: ["open"], onAsk: "wait" };
    const first = agentWith(rules, [open({ path: "%2Fetc%2Fhosts" })]);
    const handle = await (await place.restart()).submit(first, "Open it.");
    const asked = await question(handle);
    expect(asked).toMatchObject({
      kind: "tool_call",
      toolName: "open",
      input: { path: "%2Fetc%2Fhosts" },
      parsedInput: { path: "/etc/hosts", mode: "r" },
    });
    await place.restart(agentWith(rules, [reads]));
    const found = await place.find(handle.runId);
    await found.approve(asked.approvalId, { decision: "approved" });
    expect((await found.result()).output).toBe("opened /etc/hosts");
    expect(run).toEqual(["/etc/hosts r"]);
  });

  test("a person who approves a call sees its arguments once if parsing does not change them", async () => {
    const place = await openPlace(name);
    const agent = agentWith({ ask: ["open"], onAsk: "wait" }, [open({ path: "a", mode: "w" })]);
    const asked = await question(await (await place.restart()).submit(agent, "Open it."));
    expect(asked.input).toEqual({ path: "a", mode: "w" });
    expect(asked).not.toHaveProperty("parsedInput");
  });

  test("arguments that a person edited are parsed and judged again", async () => {
    run.length = 0;
    const place = await openPlace(name);
    const rules: PermissionsOptions = {
      ask: ["open"],
      deny: [
        {
          tool: "open",
          when: (input) => (input as { path: string }).path === "/etc/shadow",
          reason: "never",
        },
      ],
      onAsk: "wait",
    };
    for (const [path, output] of [
      ["%2Fetc%2Fhosts", "opened /etc/hosts"],
      ["%2Fetc%2Fshadow", "[denied: never]"],
    ] as const) {
      const agent = agentWith(rules, [open({ path: "a" }), reads]);
      const handle = await (await place.restart()).submit(agent, "Open it.");
      const { approvalId } = await question(handle);
      await handle.approve(approvalId, { decision: "approved", input: { path } });
      expect((await handle.result()).output).toBe(output);
    }
    expect(run).toEqual(["/etc/hosts r"]);
  });

  test("a call whose transformed arguments differ after a restart is approved by a person again", async () => {
    run.length = 0;
    const place = await openPlace(name);
    const rules: PermissionsOptions = { ask: ["open"], onAsk: "wait" };
    const at = (home: string) => [opener((path) => path.replace("~", home))];
    const first = agentWith(rules, [open({ path: "~/x" })], { tools: at("/home/ada") });
    const handle = await (await place.restart()).submit(first, "Open it.");
    const asked = await question(handle);
    await place.restart(agentWith(rules, [reads], { tools: at("/root") }));
    const found = await place.find(handle.runId);
    await found.approve(asked.approvalId, { decision: "approved" });
    const requests: ApprovalRequest[] = [];
    for await (const event of found.events({ types: ["approval_request"] }))
      if (event.type === "approval_request" && requests.push(event.data) === 2) break;
    expect(requests[1]?.parsedInput).toEqual({ path: "/root/x", mode: "r" });
    await found.approve(requests[1]?.approvalId ?? "", { decision: "denied" });
    expect((await found.result()).output).toBe("[denied: by a person]");
    expect(run).toEqual([]);
  });

  test("arguments of a tool call that do not match the schema reach neither a permission rule nor a person", async () => {
    const place = await openPlace(name);
    const judged: unknown[] = [];
    const when = (input: unknown) => judged.push(input) > 0;
    const agent = agentWith({ ask: [{ tool: "open", when }], onAsk: "wait" }, [open({ path: 7 }), reads]);
    const result = await (await (await place.restart()).submit(agent, "Open it.")).result();
    expect(result.output).toContain("do not match its schema");
    expect(judged).toEqual([]);
  });

  test("an argument that is not JSON after parsing reaches the rule as it is, and the person in JSON form", async () => {
    const place = await openPlace(name);
    const judged: unknown[] = [];
    const dated = tool({
      name: "open",
      description: "Opens a day",
      inputSchema: z.object({ day: z.string().transform((day) => new Date(day)) }),
      execute: ({ day }) => day.toISOString(),
    });
    const when = (input: unknown) => judged.push((input as { day: unknown }).day instanceof Date) > 0;
    const rules: PermissionsOptions = { ask: [{ tool: "open", when }], onAsk: "wait" };
    const agent = agentWith(rules, [open({ day: "2026-01-02" }), reads], { tools: [dated] });
    const handle = await (await place.restart()).submit(agent, "Open it.");
    const asked = await question(handle);
    expect(asked.parsedInput).toEqual({ day: "2026-01-02T00:00:00.000Z" });
    await handle.approve(asked.approvalId, { decision: "approved" });
    expect((await handle.result()).output).toBe("2026-01-02T00:00:00.000Z");
    expect(judged).toEqual([true]);
  });
});
