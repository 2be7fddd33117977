import { describe, expect, test } from "vitest";
import { composeGate, permissions } from "../../../../src/entries/index.ts";
import { type GateParts } from "../../../../src/agents/interception/gate/tool-pipeline.ts";
import {
  MiddlewareTermination,
  type CallVerdict,
  type Guardrail,
  type HookRegistry,
  type ToolResult,
} from "../../../../src/kernel/index.ts";
import { text } from "../../../runtime/runtime-setup.ts";
import { after, before, gateWith, type ExtendedParts, type ToolHandlers } from "./gate-with.ts";
import { gatedCall, type CallOptions } from "./gated-call.ts";

/** Returns checks of tool calls that allow everything and log each time that they are asked. */
function watched(log: string[]): Required<ExtendedParts> {
  const hooks: HookRegistry = {
    preTool: () => void log.push("hook"),
    postTool: () => void log.push("hook"),
  };
  const extension: ToolHandlers = {
    name: "extension",
    toolCall: () => void log.push("extension"),
    toolResult: () => void log.push("extension"),
  };
  const guardrail: Guardrail = {
    name: "guardrail",
    beforeCall: () => {
      log.push("guardrail");
      return { decision: "allow" };
    },
    afterCall: () => {
      log.push("guardrail");
      return { decision: "allow" };
    },
  };
  const rules = {
    check: () => {
      log.push("permissions");
      return { decision: "allow" } as const;
    },
  };
  return { hooks, extensions: [extension], guardrails: [guardrail], permissions: rules };
}

async function pass(
  parts: ExtendedParts,
  options: CallOptions = {},
): Promise<{ verdict: CallVerdict; told: string[] }> {
  const call = gatedCall(options);
  const verdict = await before(await gateWith(parts), call);
  return { verdict, told: call.told.map(({ type }) => type) };
}

async function review(
  parts: ExtendedParts,
  result: ToolResult,
): Promise<{ result: ToolResult; told: string[] }> {
  const call = gatedCall();
  const given = await after(await gateWith(parts), call, result);
  return { result: given, told: call.told.map(({ type }) => type) };
}

describe("composeGate()", () => {
  test("F1: composeGate() returns undefined if no part acts on tool calls", async () => {
    expect(composeGate({})).toBeUndefined();
    expect(await gateWith({ guardrails: [], extensions: [] })).toBeUndefined();
    const inputOnly: Guardrail = { name: "input", onInput: () => ({ decision: "allow" }) };
    expect(await gateWith({ guardrails: [inputOnly], extensions: [{ name: "idle" }] })).toBeUndefined();
    expect(composeGate({ permissions: permissions() })).toBeDefined();
  });

  test("composeGate() asks hooks, extensions, guardrails and permissions before a call, and extensions, guardrails and hooks after it", async () => {
    const log: string[] = [];
    const gate = await gateWith(watched(log));
    const call = gatedCall();
    expect(await before(gate, call)).toEqual({ decision: "allow" });
    expect(log.splice(0)).toEqual(["hook", "extension", "guardrail", "permissions"]);
    await after(gate, call, text("done"));
    expect(log).toEqual(["extension", "guardrail", "hook"]);
  });

  test("the first deny in composeGate() wins, and no later entry is asked", async () => {
    const log: string[] = [];
    const parts = watched(log);
    const hooks = { ...parts.hooks, preTool: () => ({ deny: "not on Sundays" }) };
    const { verdict } = await pass({ ...parts, hooks });
    expect(verdict).toEqual({ decision: "deny", by: "hook", reason: "not on Sundays" });
    const blocking: ToolHandlers = { name: "strict", toolCall: () => ({ block: true, reason: "no" }) };
    expect((await pass({ ...parts, extensions: [blocking] })).verdict).toMatchObject({
      by: "extension strict",
    });
    const guardrails: Guardrail[] = [{ name: "g", beforeCall: () => ({ decision: "block", reason: "bad" }) }];
    const blocked = await pass({ ...parts, guardrails });
    expect(blocked.verdict).toEqual({ decision: "deny", by: "guardrail g", reason: "bad" });
    expect(blocked.told).toEqual(["guardrail_decision"]);
    expect(log).not.toContain("permissions");
  });

  test("S4: in composeGate(), a hook or extension that throws denies or withholds; a guardrail that throws is ignored; all are recorded", async () => {
    const boom = (): never => {
      throw new Error("boom");
    };
    const { verdict, told } = await pass({ hooks: { preTool: boom, postTool: () => undefined } });
    expect(verdict).toEqual({ decision: "deny", by: "hook", reason: "a hook failed: boom" });
    expect(told).toEqual(["hook_error"]);
    const extensions: ToolHandlers[] = [{ name: "e", toolCall: boom, toolResult: boom }];
    expect(await pass({ extensions })).toEqual({
      verdict: { decision: "deny", by: "extension e", reason: "the extension failed: boom" },
      told: ["extension_error"],
    });
    const parts: GateParts = {
      guardrails: [{ name: "g", onError: "allow", beforeCall: boom, afterCall: boom }],
      hooks: { preTool: () => undefined, postTool: boom },
    };
    expect(await pass(parts)).toEqual({
      verdict: { decision: "allow" },
      told: ["guardrail_error"],
    });
    expect(await review(parts, text("done"))).toEqual({
      result: text("done"),
      told: ["guardrail_error", "hook_error"],
    });
    expect(await review({ ...parts, extensions }, text("done"))).toEqual({
      result: { ...text("[withheld: an extension failed to process this result]"), isError: true },
      told: ["extension_error", "guardrail_error", "hook_error"],
    });
  });

  test("a MiddlewareTermination from a part of composeGate() stops the run and is not recorded as an error of the part", async () => {
    const stop = new MiddlewareTermination("enough");
    const halting = (): never => {
      throw stop;
    };
    const hooks = { preTool: halting, postTool: halting };
    const parts: ExtendedParts[] = [
      { hooks },
      { extensions: [{ name: "e", toolCall: halting, toolResult: halting }] },
      { guardrails: [{ name: "g", beforeCall: halting, afterCall: halting }] },
    ];
    for (const each of parts) {
      await expect(pass(each)).rejects.toBe(stop);
      await expect(review(each, text("done"))).rejects.toBe(stop);
    }
  });

  test("patches of extensions in composeGate() apply in order, and guardrails judge the patched result", async () => {
    const seen: unknown[] = [];
    const extensions: ToolHandlers[] = [
      { name: "one", toolResult: () => ({ output: { type: "text", text: "one" } }) },
      { name: "idle", toolResult: () => undefined },
      {
        name: "two",
        toolResult: ({ result: { output } }) => ({
          output: { type: "text", text: `${output.type === "text" ? output.text : ""} two` },
          terminate: true,
        }),
      },
    ];
    const guardrails: Guardrail[] = [
      {
        name: "g",
        afterCall: (_call, { output }) => {
          seen.push(output);
          return { decision: "allow" };
        },
      },
    ];
    const { result } = await review({ extensions, guardrails }, text("zero"));
    expect(result).toEqual({ ...text("one two"), terminate: true });
    expect(seen).toEqual([result.output]);
  });

  test("O6: a guardrail's warning is added to the result, a block withholds the result, and a halt stops the run", async () => {
    const decided = (decision: "warn" | "block" | "halt", name: string = decision): Guardrail => ({
      name,
      beforeCall: () => ({ decision, reason: `${decision}ed` }),
      afterCall: () => ({ decision, reason: `${decision}ed` }),
    });
    const warned = await review({ guardrails: [decided("warn", "a"), decided("warn", "b")] }, text("done"));
    expect(warned.result.output).toEqual({
      type: "text",
      text: "done\n\n[warning by the guardrail a: warned]\n[warning by the guardrail b: warned]",
    });
    expect(warned.told).toEqual(["guardrail_decision", "guardrail_decision"]);
    const json: ToolResult = { output: { type: "json", value: { a: 1 } }, isError: false };
    expect((await review({ guardrails: [decided("warn")] }, json)).result.output).toEqual({
      type: "content",
      parts: [
        { type: "text", text: '{"a":1}' },
        { type: "text", text: "\n\n[warning by the guardrail warn: warned]" },
      ],
    });
    const secret: ToolResult = { ...text("secret"), metadata: { secret: true } };
    const { result } = await review(
      { guardrails: [decided("warn"), decided("block"), decided("halt")] },
      secret,
    );
    expect(result).toEqual({ ...text("[withheld by the guardrail block: blocked]"), isError: true });
    await expect(review({ guardrails: [decided("halt")] }, secret)).rejects.toMatchObject({
      code: "guardrail_tripped",
      by: "halt",
    });
    expect(await pass({ guardrails: [decided("warn")] })).toEqual({
      verdict: { decision: "allow" },
      told: ["guardrail_decision"],
    });
    await expect(pass({ guardrails: [decided("halt")] })).rejects.toMatchObject({ reason: "halted" });
  });

  test.each([
    ["an unknown decision", () => ({ decision: "no" })],
    ["a decision in another case", () => ({ decision: "Block", reason: "bad" })],
    ["a block without a reason", () => ({ decision: "block" })],
    ["true", () => true],
    ["false", () => false],
    ["null", () => null],
    ["nothing", () => undefined],
    ["a text", () => "block"],
    ["a getter that throws", () => Object.defineProperty({}, "decision", { get: fails })],
    ["no decision, but an error", fails],
    ["a promise that rejects", () => Promise.reject(new Error("away"))],
  ])(
    "S4: a guardrail that returns %s before a tool call blocks the call and is recorded",
    async (_what, beforeCall) => {
      const odd = { name: "odd", beforeCall } as unknown as Guardrail;
      const code =
        beforeCall === fails || _what === "a promise that rejects" ? "internal" : "invalid_argument";
      expect(await pass({ guardrails: [odd] })).toEqual({
        verdict: {
          decision: "deny",
          by: "guardrail odd",
          reason: `the guardrail failed (${code}), so its decision is unknown`,
        },
        told: ["guardrail_error", "guardrail_decision"],
      });
      expect(await pass({ guardrails: [{ ...odd, onError: "allow" }] })).toEqual({
        verdict: { decision: "allow" },
        told: ["guardrail_error"],
      });
    },
  );

  test('S4: a guardrail that throws after a tool call lets the result pass, and withholds it with onError: "block"', async () => {
    const broken: Guardrail = { name: "g", afterCall: fails };
    expect(await review({ guardrails: [broken] }, text("done"))).toEqual({
      result: text("done"),
      told: ["guardrail_error"],
    });
    const strict = await review({ guardrails: [{ ...broken, onError: "block" }] }, text("done"));
    expect(strict.told).toEqual(["guardrail_error", "guardrail_decision"]);
    expect(JSON.stringify(strict.result)).toContain("withheld by the guardrail g");
    expect(JSON.stringify(strict.result)).not.toContain("done");
  });

  test.each([
    ["true", true],
    ["false", false],
    ["null", null],
    ["a text", "deny"],
    ["an empty object", {}],
    ["a denial without a text", { deny: true }],
    ["the decision of a guardrail", { decision: "block", reason: "bad" }],
  ])(
    "a hook that returns %s before a tool call denies it, and the error names the expected shape",
    async (_what, result) => {
      const preTool = (() => result) as unknown as HookRegistry["preTool"];
      const { verdict, told } = await pass({ hooks: { preTool, postTool: () => undefined } });
      expect(verdict).toEqual({
        decision: "deny",
        by: "hook",
        reason: expect.stringContaining('expected { deny: "reason" }, or undefined for no opinion'),
      });
      expect(told).toEqual(["hook_error"]);
    },
  );

  test.each([
    ["true", true],
    ["a block without a reason", { block: true }],
    ["a block as a text", { block: "yes", reason: "bad" }],
    ["a denial of a hook", { deny: "bad" }],
  ])(
    "an extension that returns %s before a tool call blocks it, and the error names the expected shape",
    async (_what, result) => {
      const toolCall = (() => result) as unknown as NonNullable<ToolHandlers["toolCall"]>;
      const { verdict } = await pass({ extensions: [{ name: "e", toolCall }] });
      expect(verdict).toEqual({
        decision: "deny",
        by: "extension e",
        reason: expect.stringContaining("expected { block: true, reason }"),
      });
    },
  );

  test("an extension that returns block: false lets the tool call pass", async () => {
    const toolCall = (() => ({ block: false })) as unknown as NonNullable<ToolHandlers["toolCall"]>;
    expect((await pass({ extensions: [{ name: "e", toolCall }] })).verdict).toEqual({ decision: "allow" });
  });
});

describe("approval requests of composeGate()", () => {
  const critical: CallOptions = { tool: { risk: "critical" } };

  test("a call that requires approval is denied with a hint to onAsk if no handler is configured", async () => {
    const { verdict } = await pass({ permissions: permissions() }, critical);
    expect(verdict).toEqual({
      decision: "deny",
      by: "permissions",
      reason:
        'look is critical, but no one can be asked; set the option onAsk of permissions to "wait" or a handler',
    });
  });

  test("a call that requires approval waits or goes to the handler, also with hooks that return nothing", async () => {
    const silent: HookRegistry = { preTool: () => undefined, postTool: () => undefined };
    const waits = await pass({ hooks: silent, permissions: permissions({ onAsk: "wait" }) }, critical);
    expect(waits.verdict).toEqual({
      decision: "ask",
      by: "permissions",
      reason: "look is critical",
      rules: ["look is critical"],
    });
    const handler = permissions({ onAsk: () => ({ decision: "approved" }) });
    expect((await pass({ hooks: silent, permissions: handler }, critical)).verdict).toMatchObject({
      decision: "ask",
      answer: expect.any(Function),
    });
  });

  test("needsApproval of a tool applies in every permission mode and with any part, but a deny rule wins", async () => {
    const asks: CallOptions = { needsApproval: true };
    const own = { decision: "ask", by: "tool", reason: "look requires approval" };
    const guardrails: Guardrail[] = [{ name: "g", beforeCall: () => ({ decision: "allow" }) }];
    expect((await pass({ guardrails }, asks)).verdict).toEqual(own);
    const ruled = { ...own, rules: [own.reason] };
    expect((await pass({ permissions: permissions({ mode: "bypass" }) }, asks)).verdict).toEqual(ruled);
    expect((await pass({ permissions: permissions({ allow: ["look"] }) }, asks)).verdict).toEqual(ruled);
    expect((await pass({ permissions: permissions({ deny: ["look"] }) }, asks)).verdict).toMatchObject({
      decision: "deny",
    });
  });

  test("a call still requires approval if the approval memory fails", async () => {
    const boom = (): never => {
      throw new Error("boom");
    };
    const rules = permissions({ onAsk: "wait", memory: { has: boom, add: boom, delete: boom } });
    const { verdict, told } = await pass({ permissions: rules }, critical);
    expect({ decision: verdict.decision, told }).toEqual({ decision: "ask", told: ["hook_error"] });
  });

  test("a call is denied if the permissions throw or return an unknown decision", async () => {
    const broken = {
      check: () => {
        throw new Error("boom");
      },
    };
    expect((await pass({ permissions: broken })).verdict).toMatchObject({
      decision: "deny",
      reason: "permissions failed: boom",
    });
    const odd = { check: () => ({ decision: "maybe" }) } as unknown as GateParts["permissions"];
    expect((await pass(odd === undefined ? {} : { permissions: odd })).verdict.decision).toBe("deny");
  });

  test("a call is denied if the approval handler returns no valid decision", async () => {
    const yes = (() => true) as unknown as () => { decision: "approved" };
    const { verdict } = await pass({ permissions: permissions({ onAsk: yes }) }, critical);
    const { call, facts } = gatedCall();
    const request = { ...call, kind: "tool_call", approvalId: "a", inputDigest: "d", reason: "r" } as const;
    const answer = verdict.decision === "ask" ? await verdict.answer?.(request, facts) : undefined;
    expect(answer).toMatchObject({
      decision: "denied",
      reason: expect.stringContaining("invalid decision true"),
    });
  });
});

function fails(): never {
  throw new Error("boom");
}
