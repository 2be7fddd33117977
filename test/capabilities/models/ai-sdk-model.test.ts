import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3StreamPart,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { toModel, type AiSdkModel } from "../../../src/capabilities/index.ts";
import {
  assistantMessage,
  toolMessage,
  userMessage,
  type ModelRequest,
  type ModelStreamPart,
} from "../../../src/kernel/index.ts";

const usage = {
  inputTokens: { total: 100, noCache: 60, cacheRead: 30, cacheWrite: 10 },
  outputTokens: { total: 20, text: 5, reasoning: 15 },
};
const noUsage = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
};
const stop = { unified: "stop", raw: "stop" } as const;
const hello: ModelRequest = { messages: [userMessage("hello")] };

interface Fake {
  readonly content?: LanguageModelV4Content[];
  readonly parts?: readonly (LanguageModelV4StreamPart | LanguageModelV3StreamPart)[];
  readonly provider?: string;
  readonly more?: object;
  readonly onCall?: (options: LanguageModelV4CallOptions | LanguageModelV3CallOptions) => void;
}

function fake(
  version: "v3" | "v4",
  { content = [], parts = [], provider = "acme.chat", more = {}, onCall }: Fake,
) {
  const model = {
    specificationVersion: version,
    provider,
    modelId: "m-1",
    supportedUrls: { "image/*": [/^https:\/\/cdn\.example\//] },
    doGenerate: async (options: LanguageModelV4CallOptions) => {
      onCall?.(options);
      return { content, finishReason: stop, usage, warnings: [], ...more };
    },
    doStream: async (options: LanguageModelV4CallOptions) => {
      onCall?.(options);
      return { stream: ReadableStream.from(parts) };
    },
  };
  return toModel(model);
}

async function read(stream: AsyncIterable<ModelStreamPart>): Promise<ModelStreamPart[]> {
  const parts: ModelStreamPart[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

describe("toModel()", () => {
  test("toModel() adapts AI SDK models of V3 and V4 by their structure", () => {
    const v3: AiSdkModel = {} as LanguageModelV3;
    const v4: AiSdkModel = {} as LanguageModelV4;
    expect([v3, v4]).toHaveLength(2);
    expect(fake("v3", {}).provider).toBe("acme");
    expect(fake("v4", { provider: "google.generative-ai" })).toMatchObject({
      provider: "google",
      modelId: "m-1",
    });
  });

  test("toModel() refuses the arguments of a tool call that are nested deeper than 1,000 levels", async () => {
    const nested = (levels: number) => {
      const input = "[".repeat(levels) + "]".repeat(levels);
      const call = { type: "tool-call", toolCallId: "c1", toolName: "dump", input } as const;
      return fake("v4", { content: [call] }).generate(hello);
    };
    await expect(nested(1_000)).resolves.toMatchObject({ stopReason: "tool_calls" });
    await expect(nested(50_000)).rejects.toThrow("nested deeper than 1000 levels");
  });

  test("toModel() returns a Model unchanged", () => {
    const ours = fake("v4", {});
    expect(toModel(ours)).toBe(ours);
  });

  test.for([
    { value: { specificationVersion: "v2" }, code: "unsupported", says: "AI SDK 6 or 7" },
    { value: { specificationVersion: "v9" }, code: "unsupported", says: "specification v9" },
    { value: {}, code: "invalid_argument", says: "invalid model of type object" },
    { value: null, code: "invalid_argument", says: "invalid model of type object" },
    {
      value: { provider: "own", modelId: "m", generate: () => 0 },
      code: "invalid_argument",
      says: "this one lacks stream",
    },
    { value: "claude", code: "invalid_argument", says: "provider/model" },
    { value: "acme/model", code: "invalid_argument", says: "use one of anthropic, openai" },
  ])("toModel() refuses $value and says what to use instead", ({ value, code, says }) => {
    let fault: unknown;
    try {
      toModel(value as never);
    } catch (error) {
      fault = error;
    }
    expect(fault).toMatchObject({ code, message: expect.stringContaining(says) as string });
  });
});

describe("AiSdkAdapter.generate()", () => {
  test("AiSdkAdapter.generate() keeps every part of the answer in order, with the metadata that the provider wants back", async () => {
    const content: LanguageModelV4Content[] = [
      { type: "reasoning", text: "hm", providerMetadata: { acme: { signature: "s" } } },
      { type: "text", text: "It rains." },
      { type: "source", sourceType: "url", id: "1", url: "https://weather.example" },
      { type: "file", mediaType: "image/png", data: { type: "data", data: new Uint8Array([1, 2, 3]) } },
      { type: "tool-call", toolCallId: "c1", toolName: "look", input: '{"n":1}' },
      { type: "tool-call", toolCallId: "c2", toolName: "search", input: "{}", providerExecuted: true },
      { type: "tool-result", toolCallId: "c2", toolName: "search", result: { hits: 2 } },
      { type: "custom", kind: "acme.block", providerMetadata: { acme: { id: "b" } } },
    ];
    const more = { response: { modelId: "m-1-2026", timestamp: new Date(0) } };
    const answer = await fake("v4", { content, more }).generate(hello);
    expect(answer).toEqual({
      message: {
        role: "assistant",
        content: [
          { type: "reasoning", text: "hm", providerMetadata: { acme: { signature: "s" } } },
          { type: "text", text: "It rains." },
          {
            type: "opaque",
            provider: "acme",
            value: { type: "source", sourceType: "url", id: "1", url: "https://weather.example" },
          },
          { type: "file", mediaType: "image/png", source: { kind: "base64", data: "AQID" } },
          { type: "tool_call", callId: "c1", toolName: "look", input: { n: 1 } },
          {
            type: "opaque",
            provider: "acme",
            value: {
              type: "tool-call",
              toolCallId: "c2",
              toolName: "search",
              input: {},
              providerExecuted: true,
            },
          },
          {
            type: "opaque",
            provider: "acme",
            value: {
              type: "tool-result",
              toolCallId: "c2",
              toolName: "search",
              output: { type: "json", value: { hits: 2 } },
            },
          },
          {
            type: "opaque",
            provider: "acme",
            value: { type: "custom", kind: "acme.block" },
            providerMetadata: { acme: { id: "b" } },
          },
        ],
      },
      stopReason: "tool_calls",
      usage: {
        inputTokens: 100,
        outputTokens: 20,
        cacheReadTokens: 30,
        cacheWriteTokens: 10,
        reasoningTokens: 15,
      },
      modelId: "m-1-2026",
    });
  });

  test("AiSdkAdapter.generate() counts one token per byte if the provider reports no usage, at most the output limit", async () => {
    const model = fake("v4", { content: [{ type: "text", text: "déjà vu" }], more: { usage: noUsage } });
    expect((await model.generate(hello)).usage).toMatchObject({ inputTokens: 5, outputTokens: 9 });
    expect((await model.generate({ ...hello, maxOutputTokens: 4 })).usage.outputTokens).toBe(4);
  });

  test("AiSdkAdapter.generate() uses the cost that OpenRouter reports", async () => {
    const more = { usage: { ...usage, raw: { cost: 0.25 } } };
    const { usage: paid } = await fake("v4", { provider: "openrouter.chat", more }).generate(hello);
    expect(paid.costUsd).toBe(0.25);
    expect((await fake("v4", { more }).generate(hello)).usage.costUsd).toBeUndefined();
  });

  test("AiSdkAdapter.generate() throws if the provider reports that the answer failed", async () => {
    const more = { finishReason: { unified: "error", raw: "boom" } };
    await expect(fake("v4", { more }).generate(hello)).rejects.toThrow("failed");
  });
});

describe("AiSdkAdapter.stream()", () => {
  test("B3: AiSdkAdapter yields the input usage that Anthropic and Google report early, and asks other providers for no raw chunks", async () => {
    const finish = { type: "finish", finishReason: stop, usage } as const;
    const counts = { input_tokens: 60, cache_read_input_tokens: 30, cache_creation_input_tokens: 10 };
    const started = {
      type: "custom",
      kind: "anthropic.message_start",
      providerMetadata: { anthropic: { usage: { ...counts, output_tokens: 1 } } },
    } as const;
    const anthropic = fake("v4", { provider: "anthropic.messages", parts: [started, finish] });
    const input = { inputTokens: 100, outputTokens: 0, cacheReadTokens: 30 };
    const [first, ...rest] = await read(anthropic.stream(hello));
    expect(first).toEqual({ type: "usage", usage: { ...input, cacheWriteTokens: 10 } });
    expect(rest).toMatchObject([{ type: "finish", message: { content: [] } }]);
    const asked: unknown[] = [];
    const onCall: Fake["onCall"] = ({ includeRawChunks }) => asked.push(includeRawChunks);
    const usageMetadata = { promptTokenCount: 100, cachedContentTokenCount: 30, candidatesTokenCount: 3 };
    const raw = (rawValue: unknown) => ({ type: "raw", rawValue }) as const;
    const chunks = [
      raw({ usageMetadata }),
      raw({}),
      raw({ usageMetadata: { promptTokenCount: "9" } }),
      finish,
    ];
    const google = fake("v4", { provider: "google.generative-ai", parts: chunks, onCall });
    expect(await read(google.stream(hello))).toMatchObject([
      { type: "usage", usage: input },
      { type: "finish" },
    ]);
    await read(fake("v4", { parts: [finish], onCall }).stream(hello));
    expect(asked).toEqual([true, undefined]);
  });

  test("AiSdkAdapter.stream() assembles blocks by their ids, in the order in which they started", async () => {
    const parts: LanguageModelV4StreamPart[] = [
      { type: "stream-start", warnings: [] },
      { type: "response-metadata", modelId: "m-1-2026" },
      { type: "reasoning-start", id: "r" },
      { type: "text-start", id: "t" },
      { type: "reasoning-delta", id: "r", delta: "h" },
      { type: "text-delta", id: "t", delta: "He" },
      { type: "reasoning-delta", id: "r", delta: "m" },
      { type: "reasoning-end", id: "r", providerMetadata: { acme: { signature: "s" } } },
      { type: "text-delta", id: "t", delta: "llo" },
      { type: "text-end", id: "t" },
      { type: "tool-input-start", id: "c1", toolName: "look" },
      { type: "tool-input-delta", id: "c1", delta: '{"n":1}' },
      { type: "tool-input-end", id: "c1" },
      { type: "tool-call", toolCallId: "c1", toolName: "look", input: '{"n":1}' },
      { type: "ping" },
      { type: "finish", finishReason: { unified: "tool-calls", raw: "tool_use" }, usage },
    ];
    expect(await read(fake("v4", { parts }).stream(hello))).toEqual([
      { type: "reasoning_delta", text: "h" },
      { type: "text_delta", text: "He" },
      { type: "reasoning_delta", text: "m" },
      { type: "text_delta", text: "llo" },
      { type: "tool_input_delta", callId: "c1", toolName: "look", text: '{"n":1}' },
      {
        type: "finish",
        message: {
          role: "assistant",
          content: [
            { type: "reasoning", text: "hm", providerMetadata: { acme: { signature: "s" } } },
            { type: "text", text: "Hello" },
            { type: "tool_call", callId: "c1", toolName: "look", input: { n: 1 } },
          ],
        },
        stopReason: "tool_calls",
        usage: {
          inputTokens: 100,
          outputTokens: 20,
          cacheReadTokens: 30,
          cacheWriteTokens: 10,
          reasoningTokens: 15,
        },
        modelId: "m-1-2026",
      },
    ]);
  });

  const begun = [
    { type: "text-start", id: "t" },
    { type: "text-delta", id: "t", delta: "He" },
  ] as const;
  test.for([
    { end: "without a finish part", version: "v4", finish: [] },
    { end: "as interrupted", version: "v4", finish: [{ unified: "interrupted", raw: undefined }] },
    {
      end: "with the reason other and no raw reason in V3",
      version: "v3",
      finish: [{ unified: "other", raw: undefined }],
    },
    { end: "with an error", version: "v3", finish: [{ unified: "error", raw: undefined }] },
  ] as const)(
    "AiSdkAdapter.stream() throws that the answer is incomplete if the stream ends $end",
    async ({ version, finish }) => {
      const ends = finish.map((finishReason) => ({ type: "finish", finishReason, usage }) as const);
      const model = fake(version, { parts: [...begun, ...ends] });
      await expect(read(model.stream(hello))).rejects.toThrow("before the answer was complete");
    },
  );

  test("AiSdkAdapter.stream() throws the error that the stream contains, whatever its shape", async () => {
    const overloaded = { type: "overloaded_error", message: "Overloaded" };
    const model = (error: unknown) => fake("v4", { parts: [...begun, { type: "error", error }] });
    await expect(read(model(overloaded).stream(hello))).rejects.toMatchObject({ cause: overloaded });
    const error = new Error("boom");
    await expect(read(model(error).stream(hello))).rejects.toBe(error);
  });

  test("AiSdkAdapter.stream() cancels the provider's stream when its reader stops", async () => {
    let cancelled = false;
    const endless: LanguageModelV4 = {
      specificationVersion: "v4",
      provider: "acme",
      modelId: "m",
      supportedUrls: {},
      doGenerate: () => Promise.reject(new Error("not called")),
      doStream: async () => ({
        stream: new ReadableStream<LanguageModelV4StreamPart>({
          pull: (controller) => controller.enqueue({ type: "text-delta", id: "t", delta: "x" }),
          cancel: () => {
            cancelled = true;
          },
        }),
      }),
    };
    for await (const part of toModel(endless).stream(hello)) if (part.type === "text_delta") break;
    expect(cancelled).toBe(true);
  });
});

describe("the request that AiSdkAdapter sends", () => {
  const image = (source: object) => ({ type: "image", mediaType: "image/png", source }) as never;
  const conversation: ModelRequest = {
    messages: [
      userMessage([
        image({ kind: "base64", data: "AQID" }),
        image({ kind: "url", url: "https://cdn.example/a.png" }),
      ]),
      assistantMessage([
        { type: "text", text: "" },
        { type: "tool_call", callId: "c1", toolName: "look", input: "not json" },
      ]),
      toolMessage([
        {
          type: "tool_result",
          callId: "c1",
          toolName: "look",
          output: { type: "content", parts: [image({ kind: "base64", data: "AQID" })] },
          isError: false,
        },
      ]),
    ],
    tools: [{ name: "look", description: "d", inputSchema: { type: "object" } }],
    toolChoice: "required",
  };

  test.for(["v3", "v4"] as const)(
    "AiSdkAdapter sends a request in the form of specification %s",
    async (version) => {
      let sent: unknown;
      await fake(version, { onCall: (options) => (sent = options) }).generate(conversation);
      const v4 = version === "v4";
      const bytes = v4 ? { type: "data", data: "AQID" } : "AQID";
      const url = new URL("https://cdn.example/a.png");
      expect(sent).toEqual({
        prompt: [
          {
            role: "user",
            content: [
              { type: "file", mediaType: "image/png", data: bytes },
              { type: "file", mediaType: "image/png", data: v4 ? { type: "url", url } : url },
            ],
          },
          {
            role: "assistant",
            content: [
              {
                type: "tool-call",
                toolCallId: "c1",
                toolName: "look",
                input: { malformed_arguments: "not json" },
              },
            ],
          },
          {
            role: "tool",
            content: [
              {
                type: "tool-result",
                toolCallId: "c1",
                toolName: "look",
                output: {
                  type: "content",
                  value: [
                    v4
                      ? { type: "file", mediaType: "image/png", data: bytes }
                      : { type: "image-data", data: "AQID", mediaType: "image/png" },
                  ],
                },
              },
            ],
          },
        ],
        tools: [{ type: "function", name: "look", description: "d", inputSchema: { type: "object" } }],
        toolChoice: { type: "required" },
      });
    },
  );

  test("AiSdkAdapter refuses a request before the call if it contains a URL that the provider cannot fetch", async () => {
    let called = false;
    const model = fake("v4", { onCall: () => (called = true) });
    const elsewhere = image({ kind: "url", url: "http://169.254.169.254/latest/meta-data" });
    await expect(model.generate({ messages: [userMessage([elsewhere])] })).rejects.toMatchObject({
      code: "unsupported",
    });
    expect(called).toBe(false);
  });

  test("AiSdkAdapter marks the error of a tool in its request as an error", async () => {
    let sent: { prompt?: readonly { content: unknown }[] } = {};
    const model = fake("v4", { onCall: (options) => (sent = options) });
    const result = { type: "tool_result", callId: "c", toolName: "look", isError: true } as const;
    await model.generate({
      messages: [
        toolMessage([
          { ...result, output: { type: "text", text: "no" } },
          { ...result, output: { type: "json", value: { no: 1 } } },
          { ...result, output: { type: "content", parts: [{ type: "text", text: "no" }] } },
        ]),
      ],
    });
    expect(sent.prompt?.[0]?.content).toMatchObject([
      { output: { type: "error-text", value: "no" } },
      { output: { type: "error-json", value: { no: 1 } } },
      { output: { type: "error-text", value: "no" } },
    ]);
  });
});
