import { describe, expect, test } from "vitest";
import type { AssistantPart, JsonValue, LlmReply } from "../../../src/kernel/index.ts";
import { SizeLimit } from "../../../src/runtime/process/size-limit.ts";

const values: readonly (readonly [string, JsonValue])[] = [
  ["a text", "x".repeat(100)],
  ["a text that JSON escapes", "\u0001".repeat(20)],
  ["a text with lone surrogates", "\ud800".repeat(20)],
  ["a text outside ASCII", "\u00e4\u{1f600}".repeat(20)],
  ["a list of numbers", Array.from({ length: 50 }, (_, index) => index * -1.25e-9)],
  ["long keys", { ["k".repeat(60)]: null, ["\u0002".repeat(10)]: true }],
  [
    "a key named __proto__",
    JSON.parse('{"__proto__":{"admin":"yesyesyesyesyesyesyesyes"},"b":1}') as JsonValue,
  ],
  ["nested lists", [[[[["deep"], ["deeper"]]]]]],
];

describe("SizeLimit", () => {
  test.each(values)(
    "SizeLimit accepts %s of exactly the limit and refuses one that is one byte larger",
    (_what, value) => {
      const bytes = Buffer.byteLength(JSON.stringify(value));
      expect(() => new SizeLimit(bytes).assert(value, "it")).not.toThrow();
      expect(() => new SizeLimit(bytes - 1).assert(value, "it")).toThrow("it is too large: it has ");
    },
  );

  const part = { type: "text", text: "x".repeat(3_000) } as const;
  const replies: readonly (readonly [string, readonly AssistantPart[]])[] = [
    ["one long text", [part]],
    ["many parts", Array.from({ length: 100 }, () => ({ type: "text", text: "x".repeat(20) }))],
    ["reasoning", [{ type: "reasoning", text: "\u0001".repeat(500) }]],
    [
      "arguments of a tool call",
      [{ type: "tool_call", callId: "c", toolName: "t", input: { text: part.text } }],
    ],
    ["metadata of the provider", [{ type: "text", text: "", providerMetadata: { p: { text: part.text } } }]],
  ];

  test.each(replies)(
    "SizeLimit accepts a reply of exactly the limit and refuses one that is one byte larger: %s",
    (_what, content) => {
      const usage = {
        inputTokens: 1,
        outputTokens: 1,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        reasoningTokens: 0,
        costUsd: null,
      };
      const model = { provider: "scripted", modelId: "script" };
      const reply: LlmReply = { message: { role: "assistant", content }, stopReason: "stop", usage, model };
      const bytes = Buffer.byteLength(JSON.stringify(reply));
      expect(() => new SizeLimit(bytes).assertReply(reply, "it")).not.toThrow();
      expect(() => new SizeLimit(bytes - 1).assertReply(reply, "it")).toThrow("it is too large: it has ");
    },
  );

  test("SizeLimit refuses a reply whose message has provider metadata above the limit", () => {
    const usage = {
      inputTokens: 1,
      outputTokens: 1,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
      costUsd: null,
    };
    const message = { role: "assistant", content: [], providerMetadata: { p: { text: part.text } } } as const;
    const reply: LlmReply = { message, stopReason: "stop", usage, model: { provider: "p", modelId: "m" } };
    expect(() => new SizeLimit(2_000).assertReply(reply, "it")).toThrow("it is too large: it has ");
  });

  test("SizeLimit names the value, its size and the option in the fault", () => {
    expect(() => new SizeLimit(10).assert("123456789", "the input of scout")).toThrow(
      expect.objectContaining({
        code: "too_large",
        message:
          "the input of scout is too large: it has 11 bytes or more, and maxValueBytes is 10; pass a reference to a file instead, or open the runtime with a higher maxValueBytes",
        details: { bytes: 11, max: 10 },
      }),
    );
  });

  test("SizeLimit reads a list only as far as needed to refuse it", () => {
    let reads = 0;
    const item = new Proxy<Record<string, JsonValue>>({}, { ownKeys: () => (reads++, []) });
    expect(() =>
      new SizeLimit(100).assert(
        Array.from({ length: 100_000 }, () => item),
        "it",
      ),
    ).toThrow("too large");
    expect(reads).toBeLessThan(200);
  });

  test("SizeLimit refuses a value that is nested deeper than 1,000 levels before it exhausts the stack", () => {
    const nested = (levels: number): JsonValue =>
      JSON.parse("[".repeat(levels) + "]".repeat(levels)) as JsonValue;
    const limit = new SizeLimit();
    expect(() => limit.assert(nested(1_000), "it")).not.toThrow();
    for (const levels of [1_001, 50_000])
      expect(() => limit.assert(nested(levels), "it")).toThrow("it is nested deeper than 1000 levels");
  });
});
