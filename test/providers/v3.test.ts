import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3FilePart,
  LanguageModelV3GenerateResult,
  LanguageModelV3Prompt,
  LanguageModelV3StreamResult,
  LanguageModelV3ToolResultPart,
} from "@ai-sdk/provider";
import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Agent } from "../../src/assembly/agent.ts";
import { imageResult, tool, toModel } from "../../src/capabilities/index.ts";
import { userMessage, type JsonObject } from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { partsOf, usage } from "./mock-providers.ts";

const red =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const address = `data:image/png;base64,${red}`;
const mock = new LLMock({ port: 0, host: "127.0.0.1", logLevel: "silent" });
const sent: JsonObject[] = [];
let url = "";

beforeAll(async () => {
  url = await mock.start();
  mock.on({ userMessage: "camera", hasToolResult: true }, { content: "A red dot.", usage: usage(300, 4) });
  mock.on(
    { userMessage: "camera" },
    { toolCalls: [{ name: "camera", arguments: "{}", id: "call_a" }], usage: usage(20, 5) },
  );
  mock.on({ userMessage: "picture" }, { content: "A red dot.", usage: usage(300, 4) });
});

beforeEach(() => {
  sent.length = 0;
});

afterAll(() => mock.stop());

/** A minimal model of specification V3: sends a prompt as a chat completion over HTTP. */
class ChatOfV3 implements LanguageModelV3 {
  readonly specificationVersion = "v3";
  readonly provider = "chat.v3";
  readonly modelId = "some-model";
  readonly supportedUrls = { "image/*": [/^https:/u] };

  async doGenerate(options: LanguageModelV3CallOptions): Promise<LanguageModelV3GenerateResult> {
    const body = {
      model: this.modelId,
      messages: options.prompt.flatMap(chatMessages),
      tools: chatTools(options),
    };
    sent.push(JSON.parse(JSON.stringify(body)) as JsonObject);
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer not-a-key" },
      body: JSON.stringify(body),
      ...(options.abortSignal && { signal: options.abortSignal }),
    });
    const { choices, usage: used } = (await response.json()) as Completion;
    const { content, tool_calls: calls = [] } = choices[0].message;
    return {
      content: [
        ...(content ? [{ type: "text", text: content } as const] : []),
        ...calls.map(({ id, function: { name, arguments: input } }) => ({
          type: "tool-call" as const,
          toolCallId: id,
          toolName: name,
          input,
        })),
      ],
      finishReason: { unified: calls.length > 0 ? "tool-calls" : "stop", raw: choices[0].finish_reason },
      usage: {
        inputTokens: { total: used.prompt_tokens, noCache: used.prompt_tokens, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: used.completion_tokens, text: used.completion_tokens, reasoning: 0 },
      },
      warnings: [],
    };
  }

  async doStream(options: LanguageModelV3CallOptions): Promise<LanguageModelV3StreamResult> {
    const { content, finishReason, usage: used } = await this.doGenerate(options);
    return {
      stream: new ReadableStream({
        start(controller) {
          controller.enqueue({ type: "stream-start", warnings: [] });
          for (const [index, part] of content.entries()) {
            const id = String(index);
            if (part.type === "tool-call") controller.enqueue(part);
            if (part.type !== "text") continue;
            controller.enqueue({ type: "text-start", id });
            controller.enqueue({ type: "text-delta", id, delta: part.text });
            controller.enqueue({ type: "text-end", id });
          }
          controller.enqueue({ type: "finish", finishReason, usage: used });
          controller.close();
        },
      }),
    };
  }
}

interface Completion {
  readonly choices: readonly [
    {
      readonly finish_reason: string;
      readonly message: {
        readonly content: string | null;
        readonly tool_calls?: readonly {
          readonly id: string;
          readonly function: { readonly name: string; readonly arguments: string };
        }[];
      };
    },
  ];
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number };
}

function chatMessages(message: LanguageModelV3Prompt[number]): readonly JsonObject[] {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: message.content }];
    case "user":
      return [
        {
          role: "user",
          content: message.content.map((part) =>
            part.type === "text" ? { type: "text", text: part.text } : imageUrl(fileAddress(part)),
          ),
        },
      ];
    case "assistant":
      return [
        {
          role: "assistant",
          content: null,
          tool_calls: message.content.flatMap((part) =>
            part.type === "tool-call"
              ? [
                  {
                    id: part.toolCallId,
                    type: "function",
                    function: { name: part.toolName, arguments: JSON.stringify(part.input) },
                  },
                ]
              : [],
          ),
        },
      ];
    case "tool":
      return message.content.flatMap((part) => (part.type === "tool-result" ? [toolAnswer(part)] : []));
  }
}

/** Returns the data of a V3 file part, which is bytes, base64 or a URL, as a URL. */
function fileAddress({ data, mediaType }: LanguageModelV3FilePart): string {
  if (data instanceof URL) return data.href;
  return `data:${mediaType};base64,${typeof data === "string" ? data : Buffer.from(data).toString("base64")}`;
}

function toolAnswer({ toolCallId, output }: LanguageModelV3ToolResultPart): JsonObject {
  if (output.type !== "content") throw new Error(`expected a content result, got ${output.type}`);
  const content = output.value.map((part) => {
    if (part.type === "text") return { type: "text", text: part.text };
    if (part.type === "image-data") return imageUrl(`data:${part.mediaType};base64,${part.data}`);
    throw new Error(`unexpected part of a result: ${part.type}`);
  });
  return { role: "tool", tool_call_id: toolCallId, content };
}

function imageUrl(at: string): JsonObject {
  return { type: "image_url", image_url: { url: at } };
}

function chatTools({ tools = [] }: LanguageModelV3CallOptions): readonly JsonObject[] | undefined {
  if (tools.length === 0) return undefined;
  return tools.flatMap((each) =>
    each.type === "function"
      ? [{ type: "function", function: { name: each.name, parameters: each.inputSchema as JsonObject } }]
      : [],
  );
}

test.for(["generated", "streamed"] as const)(
  "a V3 model receives images over HTTP as bytes, as data URLs and as URLs (%s)",
  async (way) => {
    const picture = (source: { kind: "base64"; data: string } | { kind: "url"; url: string }) =>
      ({ type: "image", mediaType: "image/png", source }) as const;
    const request = {
      messages: [
        userMessage([
          { type: "text", text: "picture" },
          picture({ kind: "base64", data: red }),
          picture({ kind: "url", url: address }),
          picture({ kind: "url", url: "https://pictures.example/dot.png" }),
        ]),
      ],
    };
    const model = toModel(new ChatOfV3());
    const said =
      way === "generated"
        ? (await model.generate(request)).message.content
        : (await partsOf(model, request)).flatMap((part) =>
            part.type === "finish" ? part.message.content : [],
          );
    expect(said).toMatchObject([{ type: "text", text: "A red dot." }]);
    expect(sent).toMatchObject([
      {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "picture" },
              imageUrl(address),
              imageUrl(address),
              imageUrl("https://pictures.example/dot.png"),
            ],
          },
        ],
      },
    ]);
  },
);

test("an agent on a V3 model sees the image that a tool returned, and is charged for it", async () => {
  const camera = tool({
    name: "camera",
    description: "Takes a picture",
    inputSchema: { type: "object" },
    execute: () => imageResult(Buffer.from(red, "base64"), "image/png", { text: "taken" }),
  });
  const runtime = await createRuntime({ unknownPrice: "ignore" });
  const agent = new Agent({ name: "watcher", model: toModel(new ChatOfV3()), tools: [camera] });
  const result = await (await runtime.submit(agent, "Look through the camera")).result();
  await runtime.close();
  expect(result).toMatchObject({ status: "completed", output: "A red dot." });
  expect(result.usage).toMatchObject({ inputTokens: 320, outputTokens: 9 });
  const answer = [{ type: "text", text: "taken" }, imageUrl(address)];
  expect(sent.at(-1)?.["messages"]).toContainEqual({ role: "tool", tool_call_id: "call_a", content: answer });
});
