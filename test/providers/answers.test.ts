import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { withSettings } from "../../src/capabilities/index.ts";
import {
  assistantMessage,
  systemMessage,
  toolCallsOf,
  toolMessage,
  userMessage,
  type ModelResponse,
  type ToolSpec,
} from "../../src/kernel/index.ts";
import { mockProviders, partsOf, providerKeys, usage, type MockProviders } from "./mock-providers.ts";

let providers: MockProviders;
beforeAll(async () => {
  providers = await mockProviders();
  const { mock } = providers;
  mock.on(
    { userMessage: "hello" },
    { content: "Hello there, friend.", usage: usage(11, 5) },
    { chunkSize: 5 },
  );
  mock.on({ userMessage: "weather", hasToolResult: true }, { content: "Rain in both.", usage: usage(40, 6) });
  mock.on(
    { userMessage: "weather" },
    {
      toolCalls: [
        { name: "weather", arguments: '{"town":"Tours"}', id: "call_a" },
        { name: "weather", arguments: '{"town":"Nantes"}', id: "call_b" },
      ],
      usage: usage(20, 12),
    },
  );
  mock.on({ userMessage: "picture" }, { content: "A red dot.", usage: usage(300, 4) });
  mock.on({ userMessage: "structured" }, { content: '{"town":"Tours","days":3}', usage: usage(30, 9) });
  mock.on(
    { userMessage: "think" },
    { content: "42", reasoning: "Let me see.", reasoningSignature: "c2lnbmVk", usage: usage(9, 30) },
  );
  mock.on(
    { userMessage: "broken arguments" },
    { toolCalls: [{ name: "weather", arguments: '{"town": "To' }] },
  );
  mock.on(
    { userMessage: "slowly" },
    { content: "One after the other. ".repeat(20) },
    { chunkSize: 4, latency: 20 },
  );
});
beforeEach(() => {
  providers.sent.length = 0;
});
afterAll(() => providers.stop());

const weather: ToolSpec = {
  name: "weather",
  description: "The weather in a town",
  inputSchema: { type: "object", properties: { town: { type: "string" } }, required: ["town"] },
};
const red =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

function textOf({ message }: ModelResponse): string {
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

describe.each(providerKeys)("a model of %s", (key) => {
  const model = () => providers.models[key];

  test("a provider's model returns text and usage", async () => {
    const answer = await model().generate({ messages: [systemMessage("Be kind."), userMessage("hello")] });
    expect(textOf(answer)).toBe("Hello there, friend.");
    expect(answer).toMatchObject({ stopReason: "stop", usage: { inputTokens: 11, outputTokens: 5 } });
  });

  test("a provider's model streams the text in pieces, and its finish part equals the result of generate()", async () => {
    const request = { messages: [userMessage("hello")] };
    const parts = await partsOf(model(), request);
    const pieces = parts.flatMap((part) => (part.type === "text_delta" ? [part.text] : []));
    expect(pieces.length).toBeGreaterThan(2);
    expect(pieces.join("")).toBe("Hello there, friend.");
    const { type, ...finish } = parts.at(-1) as { type: string } & ModelResponse;
    expect(type).toBe("finish");
    expect(finish).toMatchObject({ stopReason: "stop", usage: { inputTokens: 11, outputTokens: 5 } });
    expect(finish.message.content.map((part) => part.type)).toEqual(
      (await model().generate(request)).message.content.map((part) => part.type),
    );
  });

  test.for([false, true])(
    "a provider's model calls several tools in one turn and receives their results (streamed: %s)",
    async (streamed) => {
      const ask = async (
        request: Parameters<ReturnType<typeof model>["generate"]>[0],
      ): Promise<ModelResponse> =>
        streamed
          ? ((await partsOf(model(), request)).at(-1) as unknown as ModelResponse)
          : model().generate(request);
      const question = userMessage("weather in Tours and Nantes?");
      const first = await ask({ messages: [question], tools: [weather] });
      const calls = toolCallsOf(first.message);
      expect(first.stopReason).toBe("tool_calls");
      expect(calls.map(({ toolName, input }) => [toolName, input])).toEqual([
        ["weather", { town: "Tours" }],
        ["weather", { town: "Nantes" }],
      ]);
      const results = calls.map(({ callId, toolName }, index) => ({
        type: "tool_result" as const,
        callId,
        toolName,
        output:
          index === 0
            ? ({ type: "text", text: "rain" } as const)
            : ({ type: "json", value: { mm: 4 } } as const),
        isError: false,
      }));
      const second = await ask({
        messages: [question, first.message, toolMessage(results)],
        tools: [weather],
      });
      expect(textOf(second)).toBe("Rain in both.");
      const wire = JSON.stringify(providers.sent.at(-1));
      expect(wire).toContain("rain");
      expect(wire).toContain("mm");
    },
  );

  test("a model of each provider receives images as bytes and as data URLs", async () => {
    const inline = { type: "image", mediaType: "image/png", source: { kind: "base64", data: red } } as const;
    const address = `data:image/png;base64,${red}`;
    const linked = { type: "image", mediaType: "image/png", source: { kind: "url", url: address } } as const;
    const answer = await model().generate({
      messages: [userMessage([{ type: "text", text: "picture" }, inline, linked])],
    });
    expect(textOf(answer)).toBe("A red dot.");
    expect(JSON.stringify(providers.sent.at(-1)).split(red)).toHaveLength(3);
  });

  test("a model of each provider receives files", async () => {
    const pdf = Buffer.from("%PDF-1.4 a page").toString("base64");
    const file = {
      type: "file",
      mediaType: "application/pdf",
      filename: "page.pdf",
      source: { kind: "base64", data: pdf },
    } as const;
    await model().generate({ messages: [userMessage([{ type: "text", text: "picture" }, file])] });
    expect(JSON.stringify(providers.sent.at(-1))).toContain(pdf);
  });

  test("a model of each provider receives an output schema through the provider's own parameter, or else as a message", async () => {
    const schema = {
      type: "object",
      properties: { town: { type: "string" }, days: { type: "number" } },
      required: ["town", "days"],
      additionalProperties: false,
    } as const;
    const answer = await model().generate({
      messages: [systemMessage("Plan."), userMessage("structured")],
      responseFormat: { type: "json", schema, name: "plan" },
    });
    expect(JSON.parse(textOf(answer))).toEqual({ town: "Tours", days: 3 });
    const wire = JSON.stringify(providers.sent.at(-1));
    // The schema is in the provider's own parameter, or in a message if the provider has none.
    expect(wire).toContain("days");
    expect(wire.includes("match this JSON Schema")).toBe(key === "openai-compatible");
  });

  test("a model of each provider receives an output schema once if the instructions contain it already", async () => {
    const schema = { type: "object", properties: { town: { type: "string" } }, required: ["town"] } as const;
    await model().generate({
      messages: [systemMessage(`Match ${JSON.stringify(schema)}`), userMessage("structured")],
      responseFormat: { type: "json", schema, name: "plan" },
    });
    const wire = JSON.stringify(providers.sent.at(-1));
    expect(wire.includes("Answer with one JSON value")).toBe(false);
  });

  test("a model of each provider knows whether the provider enforces an output schema", () => {
    expect(model().supportsStructuredOutput).toBe(key === "openai-compatible" ? undefined : true);
  });

  test("a model of each provider receives tool choice, output limit, temperature and stop sequences", async () => {
    await model().generate({
      messages: [userMessage("hello")],
      tools: [weather],
      toolChoice: { toolName: "weather" },
      maxOutputTokens: 77,
      stopSequences: ["END"],
    });
    const wire = JSON.stringify(providers.sent.at(-1));
    expect(wire).toContain("77");
    // OpenAI's Responses API has no stop sequences.
    expect(wire.includes("END")).toBe(key !== "openai");
    expect(wire).toMatch(/"(?:tool_choice|toolConfig)":/u);
  });

  test("a model of each provider receives the sampling settings that its API has", async () => {
    await model().generate({
      messages: [userMessage("hello")],
      topP: 0.25,
      topK: 41,
      seed: 97,
      presencePenalty: 0.125,
      frequencyPenalty: 0.375,
    });
    const wire = JSON.stringify(providers.sent.at(-1));
    // The providers of OpenAI's Responses API and of Anthropic leave out what these models do not accept.
    const isSampled = key !== "openai" && key !== "anthropic";
    for (const value of ["0.25", "97", "0.125", "0.375"]) expect(wire.includes(value)).toBe(isSampled);
    expect(wire.includes("41")).toBe(key === "google");
  });

  test("a provider's model returns arguments that are not JSON unchanged, so that the tool's schema refuses them", async () => {
    const { message } = await model().generate({
      messages: [userMessage("broken arguments")],
      tools: [weather],
    });
    const [call] = toolCallsOf(message);
    // These two send arguments as an object; the mock server replaces malformed ones by an empty object.
    const parsed = key === "anthropic" || key === "google";
    expect(call?.input).toEqual(parsed ? {} : '{"town": "To');
  });

  test("a provider's model stops when the call is cancelled", async () => {
    const controller = new AbortController();
    controller.abort(new Error("enough"));
    const request = { messages: [userMessage("hello")] };
    await expect(model().generate(request, { signal: controller.signal })).rejects.toThrow("enough");
    await expect(partsOf(model(), request, controller.signal)).rejects.toThrow("enough");
  });

  test("a provider's model stops in the middle of a stream when the call is cancelled", async () => {
    const controller = new AbortController();
    const seen: string[] = [];
    const read = async () => {
      for await (const part of model().stream(
        { messages: [userMessage("slowly")] },
        { signal: controller.signal },
      )) {
        seen.push(part.type);
        controller.abort(new Error("enough"));
      }
    };
    await expect(read()).rejects.toHaveProperty("cause.message", "enough");
    expect(seen).not.toContain("finish");
  });
});

describe("provider metadata in the next request", () => {
  test("Anthropic's signed thinking is sent back unchanged in the next request, but not to another provider", async () => {
    const { anthropic, "openai chat": chat } = providers.models;
    const question = userMessage("think");
    const { message } = await anthropic.generate({ messages: [question] });
    expect(message.content[0]).toEqual({
      type: "reasoning",
      text: "Let me see.",
      providerMetadata: { anthropic: { signature: "c2lnbmVk" } },
    });
    const streamed = (await partsOf(anthropic, { messages: [question] })).at(-1) as unknown as ModelResponse;
    expect(streamed.message.content[0]).toEqual(message.content[0]);
    const next = [question, message, userMessage("hello")];
    await anthropic.generate({ messages: next });
    expect(JSON.stringify(providers.sent.at(-1))).toContain(
      '"thinking":"Let me see.","signature":"c2lnbmVk"',
    );
    await chat.generate({ messages: next });
    expect(JSON.stringify(providers.sent.at(-1))).not.toContain("c2lnbmVk");
  });

  test("OpenAI's reasoning is sent back by its id in the next request", async () => {
    const question = userMessage("think");
    const { message } = await providers.models.openai.generate({ messages: [question] });
    const [thought] = message.content;
    expect(thought).toMatchObject({ type: "reasoning", text: "Let me see." });
    const itemId = JSON.stringify(thought?.providerMetadata?.["openai"]?.["itemId"]);
    expect(itemId).toMatch(/^"rs/u);
    await providers.models.openai.generate({ messages: [question, message, userMessage("hello")] });
    expect(JSON.stringify(providers.sent.at(-1))).toContain(itemId);
  });

  test("an opaque part of an answer is sent back only to its own provider", async () => {
    const custom = { type: "custom", kind: "anthropic.fallback" };
    const opaque = {
      type: "opaque",
      provider: "anthropic",
      value: custom,
      providerMetadata: { anthropic: { type: "fallback", from: { model: "a" }, to: { model: "b" } } },
    } as const;
    const messages = [
      userMessage("hello"),
      assistantMessage([opaque, { type: "text", text: "Hm." }]),
      userMessage("hello"),
    ];
    await providers.models.anthropic.generate({ messages });
    expect(JSON.stringify(providers.sent.at(-1))).toContain('"type":"fallback"');
    await providers.models.google.generate({ messages });
    expect(JSON.stringify(providers.sent.at(-1))).not.toContain("fallback");
  });
});

describe("withSettings() over HTTP", () => {
  test("promptCache of withSettings() marks the system message and the last three messages that are not the model's", async () => {
    const model = withSettings(providers.models.anthropic, { promptCache: true });
    await model.generate({
      messages: [
        systemMessage("Long."),
        userMessage("zero"),
        assistantMessage("Hm."),
        userMessage("one"),
        assistantMessage("Hm."),
        userMessage("two"),
        assistantMessage("Hm."),
        userMessage("hello"),
      ],
    });
    const { system, messages } = providers.sent.at(-1) as {
      system: { cache_control?: object }[];
      messages: { content: { text?: string; cache_control?: object }[] }[];
    };
    expect(system.map(({ cache_control }) => cache_control)).toEqual([{ type: "ephemeral" }]);
    const marked = messages.flatMap(({ content }) =>
      content.flatMap(({ text, cache_control }) => (cache_control === undefined ? [] : [text])),
    );
    expect(marked).toEqual(["one", "two", "hello"]);
  });

  test("withSettings() sends provider options and the output limit with every call, and thinking counts against the limit", async () => {
    const model = withSettings(providers.models.anthropic, {
      maxOutputTokens: 5_000,
      providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 2_000 } } },
    });
    expect(model.maxOutputTokens).toBe(5_000);
    await model.generate({ messages: [userMessage("hello")] });
    expect(providers.sent.at(-1)).toMatchObject({
      max_tokens: 5_000,
      thinking: { type: "enabled", budget_tokens: 2_000 },
    });
    await expect(
      model.generate({ messages: [userMessage("hello")], maxOutputTokens: 1_500 }),
    ).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("an image URL is sent unchanged to a provider that fetches it", async () => {
    const source = { kind: "url", url: "https://pictures.example/dot.png" } as const;
    const image = { type: "image", mediaType: "image/png", source } as const;
    const request = { messages: [userMessage([{ type: "text", text: "picture" }, image])] };
    await providers.models.openai.generate(request);
    expect(JSON.stringify(providers.sent.at(-1))).toContain(source.url);
  });
});
