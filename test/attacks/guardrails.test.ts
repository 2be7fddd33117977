import { describe, expect, test } from "vitest";
import {
  Agent,
  openRuntime,
  tool,
  toolHooks,
  type Guardrail,
  type Extension,
} from "../../src/entries/index.ts";
import type { ExtensionHandler, HookRegistry, JsonValue } from "../../src/kernel/index.ts";
import { pii } from "../../src/assembly/guardrails.ts";
import { scriptedModel } from "../../src/testing/index.ts";

/** The arguments with which the dangerous tool was executed. */
const executed: JsonValue[] = [];

const wipe = tool({
  name: "wipe",
  description: "Deletes everything",
  inputSchema: { type: "object" } as const,
  execute: (input) => {
    executed.push(input);
    return "wiped";
  },
});

type Parts = Partial<ConstructorParameters<typeof Agent>[0]>;

/** Runs an agent whose model calls the dangerous tool once, and returns what happened. */
async function attack(
  parts: Parts,
  input = "Go.",
): Promise<{ status: string; calls: number; wiped: number }> {
  executed.length = 0;
  const model = scriptedModel([{ toolCalls: [{ name: "wipe", input: {} }] }, "Done.", "Done."]);
  const runtime = await openRuntime();
  const agent = new Agent({ name: "clerk", model, tools: [wipe], ...parts });
  const { status } = await agent.invoke(input, { runtime });
  await runtime.close();
  return { status, calls: model.calls.length, wiped: executed.length };
}

/** What a broken or hostile part does when it is asked for a decision. */
const broken: readonly (readonly [what: string, answer: () => unknown])[] = [
  [
    "throws an error",
    () => {
      throw new Error("out of order");
    },
  ],
  [
    "throws a text",
    () => {
      throw "out of order";
    },
  ],
  [
    "throws undefined",
    () => {
      throw undefined;
    },
  ],
  ["rejects", () => Promise.reject(new Error("out of order"))],
  ["returns nothing", () => undefined],
  ["returns null", () => null],
  ["returns true", () => true],
  ["returns false", () => false],
  ["returns a number", () => 0],
  ["returns a text", () => "block"],
  ["returns an empty object", () => ({})],
  ["returns an array", () => ["block", "bad"]],
  ["returns a decision in capitals", () => ({ decision: "BLOCK", reason: "bad" })],
  ["returns a block without a reason", () => ({ decision: "block" })],
  ["returns a block with a reason that is no text", () => ({ decision: "block", reason: 1 })],
  ["returns the decision of another library", () => ({ action: "deny", message: "bad" })],
  ["returns a decision with spaces", () => ({ decision: " allow " })],
  [
    "returns a getter that throws",
    () => ({
      get decision() {
        throw new Error("no");
      },
    }),
  ],
  [
    "returns a value with a cycle",
    () => {
      const cycle: Record<string, unknown> = {};
      cycle["decision"] = cycle;
      return cycle;
    },
  ],
  ["returns a bigint", () => ({ decision: 1n })],
  [
    "returns a revoked proxy",
    () => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      return proxy;
    },
  ],
  ["returns a promise of a promise of nothing", async () => Promise.resolve(undefined)],
];

describe("attacks on guardrails: a part that cannot decide blocks", () => {
  test.each(broken)("an input guardrail that %s lets no model call be paid", async (_what, answer) => {
    const guardrail = { name: "g", onInput: answer } as unknown as Guardrail;
    expect(await attack({ guardrails: [guardrail] })).toEqual({
      status: "guardrail_tripped",
      calls: 0,
      wiped: 0,
    });
  });

  test.each(broken)("a guardrail of tool calls that %s lets no tool be executed", async (_what, answer) => {
    const guardrail = { name: "g", beforeCall: answer } as unknown as Guardrail;
    expect(await attack({ guardrails: [guardrail] })).toMatchObject({ status: "completed", wiped: 0 });
  });

  test.each(broken.filter(([what]) => !what.includes("nothing")))(
    "a hook before tool calls that %s lets no tool be executed",
    async (_what, answer) => {
      const preTool = answer as unknown as HookRegistry["preTool"];
      const hooks: HookRegistry = { preTool, postTool: () => undefined };
      expect(await attack({ toolHooks: hooks })).toMatchObject({ status: "completed", wiped: 0 });
      const registered = toolHooks();
      registered.onPreTool(answer as unknown as Parameters<typeof registered.onPreTool>[0]);
      expect(await attack({ toolHooks: registered })).toMatchObject({ status: "completed", wiped: 0 });
    },
  );

  test.each([
    ["true", true],
    ["a text", "block"],
    ["an empty object", {}],
    ["a block as a text", { block: "true", reason: "bad" }],
    ["a block without a reason", { block: true }],
    ["a denial of a hook", { deny: "bad" }],
  ])("an extension that returns %s for a tool call lets no tool be executed", async (_what, answer) => {
    const handler = (() => answer) as unknown as ExtensionHandler<"tool_call">;
    const extension: Extension = { name: "e", setup: (api) => api.on("tool_call", handler) };
    expect(await attack({ extensions: [extension] })).toMatchObject({ wiped: 0 });
  });
});

/** The digits of an invented card number. */
const digits = Array.from("4111111111111111");

describe("attacks on the pii guardrail: personal data in disguise", () => {
  test.each([
    ["Arabic-Indic digits", "٤١١١ ١١١١ ١١١١ ١١١١"],
    ["Devanagari digits", "४१११ ११११ ११११ ११११"],
    ["full-width digits", "４１１１１１１１１１１１１１１１"],
    ["bold mathematical digits", "𝟒𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏"],
    ["circled digits", "④①①① ①①①① ①①①① ①①①①"],
    ["superscript digits", "⁴¹¹¹¹¹¹¹¹¹¹¹¹¹¹¹"],
    ["keycap emoji", digits.map((each) => `${each}\uFE0F\u20E3`).join("")],
    ["struck-through digits", digits.map((each) => `${each}\u0336`).join("")],
    ["zero-width spaces", digits.join("\u200B")],
    ["zero-width joiners", digits.join("\u200D")],
    ["soft hyphens", digits.join("\u00AD")],
    ["a byte order mark", "41111111\uFEFF11111111"],
    ["tag characters", "41111111\u{E0031}11111111"],
    ["no-break hyphens", "4111\u20111111\u20111111\u20111111"],
    ["en dashes", "4111–1111–1111–1111"],
    ["minus signs", "4111−1111−1111−1111"],
    ["middle dots", "4111·1111·1111·1111"],
    ["ideographic spaces", "4111\u30001111\u30001111\u30001111"],
    ["line breaks", "4111\n1111\r\n1111\t1111"],
    ["an e-mail address with a full-width @", "ann＠example.org"],
    ["an e-mail address with ideographic dots", "ann@example。org"],
    ["an e-mail address with an invisible character", "ann@exam\u200Bple.org"],
    ["a social security number with no-break hyphens", "123\u201145\u20116789"],
    ["an IBAN in full width", "ＤＥ８９３７０４００４４０５３２０１３０００"],
  ])("the guardrail pii() detects personal data in disguise: %s", async (_what, text) => {
    const guardrails = [pii({ stages: { input: "block" } })];
    expect(await attack({ guardrails }, `My number: ${text}.`)).toEqual({
      status: "guardrail_tripped",
      calls: 0,
      wiped: 0,
    });
  });
});
