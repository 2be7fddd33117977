import { expect, test } from "vitest";
import { assistantMessage, type Model, type ModelResponse } from "../../../src/kernel/index.ts";
import { Agent, openRuntime, tool } from "../../../src/entries/index.ts";

const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object" },
  execute: async () => "seen",
});

/** A model that calls a tool once and then answers, with this usage in each response. */
function modelWith(usage: unknown): Model & { readonly calls: () => number } {
  let calls = 0;
  const respond = (): ModelResponse => {
    const toolCall = { type: "tool_call", callId: "c", toolName: "look", input: {} } as const;
    const isFirst = ++calls === 1;
    return {
      message: isFirst ? { role: "assistant", content: [toolCall] } : assistantMessage("done"),
      stopReason: isFirst ? "tool_calls" : "stop",
      usage: usage as ModelResponse["usage"],
    };
  };
  return {
    provider: "custom",
    modelId: "m",
    calls: () => calls,
    generate: async () => respond(),
    stream: async function* stream() {
      yield { type: "finish", ...respond() };
    },
  };
}

const counts = { inputTokens: 100, outputTokens: 1 };

test.each([
  ["no usage", undefined, "custom/m returned an invalid usage undefined"],
  [
    "usage without outputTokens",
    { inputTokens: 1 },
    "usage.outputTokens undefined: expected an integer from 0",
  ],
  ["NaN input tokens", { ...counts, inputTokens: Number.NaN }, "usage.inputTokens NaN"],
  ["negative input tokens", { ...counts, inputTokens: -5 }, "usage.inputTokens -5"],
  ["a text as a count", { ...counts, cacheReadTokens: "100" }, 'usage.cacheReadTokens "100"'],
  ["an infinite cost", { ...counts, costUsd: Number.POSITIVE_INFINITY }, "usage.costUsd Infinity"],
])(
  "B3: a model response with %s fails the run at the first call, which is charged as unreported",
  async (_name, usage, message) => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    for (const streaming of [false, true]) {
      const model = modelWith(usage);
      const agent = new Agent({ name: streaming ? "streamed" : "invoked", model, tools: [look] });
      const options = { runtime, budget: { maxTokens: 60_000 } };
      const result = await (streaming ? agent.stream("Go", options).result() : agent.invoke("Go", options));
      expect(result).toMatchObject({
        status: "failed",
        error: { code: "invalid_argument", message: expect.stringContaining(message) as string },
      });
      expect(result.unreported?.tokens).toBeGreaterThan(0);
      expect(model.calls()).toBe(1);
    }
  },
);

test("model usage without cache and reasoning tokens counts them as 0", async () => {
  await using runtime = await openRuntime({ unknownPrice: "ignore" });
  const model = modelWith(counts);
  const result = await new Agent({ name: "caller", model, tools: [look] }).invoke("Go", { runtime });
  expect(result).toMatchObject({
    status: "completed",
    output: "done",
    usage: {
      inputTokens: 200,
      outputTokens: 2,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
    },
  });
});

test.each([["error"], [undefined]])(
  "a model response with the stop reason %s fails the run at the first call, which is charged as it was reported",
  async (stopReason) => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    for (const streaming of [false, true]) {
      const response = { ...(await modelWith(counts).generate({ messages: [] })), stopReason } as never;
      const model: Model = {
        ...modelWith(counts),
        generate: async () => response,
        stream: async function* stream() {
          yield { type: "finish", ...(response as ModelResponse) };
        },
      };
      const agent = new Agent({ name: streaming ? "streamed" : "invoked", model, tools: [look] });
      const result = await (streaming
        ? agent.stream("Go", { runtime }).result()
        : agent.invoke("Go", { runtime }));
      expect(result).toMatchObject({
        status: "failed",
        error: {
          code: "invalid_argument",
          message: expect.stringContaining(`custom/m returned an invalid stopReason`) as string,
        },
      });
      expect(result).toMatchObject({ turns: 1, unreported: { tokens: 0 }, usage: { inputTokens: 100 } });
    }
  },
);
