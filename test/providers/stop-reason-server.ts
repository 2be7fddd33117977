import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { toModel } from "../../src/capabilities/index.ts";
import type { JsonObject, Model } from "../../src/kernel/index.ts";

export type Wire = "openai" | "openai chat" | "anthropic" | "google";

/** One answer, in the terms of the provider whose format it gets. */
export interface WireAnswer {
  readonly text?: string;
  /** The provider's own stop reason. If absent, the provider's normal one. */
  readonly reason?: string;
  /** Arguments of a call of the tool `lookup`, as JSON text, which may be cut. */
  readonly call?: string;
  /** OpenAI: the model's refusal, instead of text. */
  readonly refusal?: string;
  /** Google: the prompt was blocked, so that there is no candidate. */
  readonly blockReason?: string;
}

export interface StopReasonServer {
  readonly models: Readonly<Record<Wire, Model>>;
  /** Answers of the next requests, in order. */
  readonly script: WireAnswer[];
  readonly sent: JsonObject[];
  readonly stop: () => void;
}

/** Starts a server that speaks the formats of four APIs, and creates models of the real provider packages that use it. */
export async function stopReasonServer(): Promise<StopReasonServer> {
  const script: WireAnswer[] = [];
  const sent: JsonObject[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as JsonObject;
      sent.push(body);
      const answer = script.shift();
      if (answer === undefined) {
        response.writeHead(400).end('{"error":{"message":"the script is used up"}}');
        return;
      }
      const url = request.url ?? "";
      const wire = wireOf(url);
      const streamed = body["stream"] === true || url.includes("streamGenerateContent");
      response.writeHead(200, { "content-type": streamed ? "text/event-stream" : "application/json" });
      response.end(streamed ? framesOf[wire](answer).join("") : JSON.stringify(bodyOf[wire](answer)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const common = { apiKey: "not-a-key" };
  const openai = createOpenAI({ ...common, baseURL: `${url}/v1` });
  return {
    script,
    sent,
    models: {
      openai: toModel(openai("gpt-5")),
      "openai chat": toModel(openai.chat("gpt-4o")),
      anthropic: toModel(createAnthropic({ ...common, baseURL: `${url}/v1` })("claude-sonnet-5")),
      google: toModel(createGoogle({ ...common, baseURL: `${url}/v1beta` })("gemini-3-pro")),
    },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function wireOf(url: string): Wire {
  if (url.includes("/messages")) return "anthropic";
  if (url.includes("/responses")) return "openai";
  return url.includes("/chat/completions") ? "openai chat" : "google";
}

const counts = { input_tokens: 10, output_tokens: 4 };
const event = (data: { readonly type: string }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
const frame = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;

const chatUsage = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 };
const chatCalls = (call: string) => [
  { index: 0, id: "call_1", type: "function", function: { name: "lookup", arguments: call } },
];
const chatReason = ({ reason, call }: WireAnswer) => reason ?? (call === undefined ? "stop" : "tool_calls");
const chatMessage = ({ text, call, refusal }: WireAnswer) => ({
  role: "assistant",
  content: text ?? null,
  ...(call !== undefined && { tool_calls: chatCalls(call) }),
  ...(refusal !== undefined && { refusal }),
});

function responseOutput({ text, call, refusal, reason }: WireAnswer): readonly object[] {
  const status = reason === undefined ? "completed" : "incomplete";
  const content =
    refusal === undefined ? { type: "output_text", text, annotations: [] } : { type: "refusal", refusal };
  return [
    ...(text === undefined && refusal === undefined
      ? []
      : [{ type: "message", id: "msg_1", role: "assistant", status, content: [content] }]),
    ...(call === undefined
      ? []
      : [{ type: "function_call", id: "fc_1", call_id: "call_1", name: "lookup", arguments: call, status }]),
  ];
}

const responseBody = (answer: WireAnswer) => ({
  id: "resp_1",
  object: "response",
  created_at: 1,
  model: "gpt-5",
  status: answer.reason === undefined ? "completed" : "incomplete",
  incomplete_details: answer.reason === undefined ? null : { reason: answer.reason },
  output: responseOutput(answer),
  usage: counts,
});

/** Anthropic sends the arguments of a call that was cut as an empty object. */
const blocksOf = ({ text, call }: WireAnswer) => [
  ...(text === undefined ? [] : [{ type: "text", text }]),
  ...(call === undefined ? [] : [{ type: "tool_use", id: "toolu_1", name: "lookup", input: readOr(call) }]),
];
const anthropicReason = ({ reason, call }: WireAnswer) =>
  reason ?? (call === undefined ? "end_turn" : "tool_use");

function readOr(call: string): unknown {
  try {
    return JSON.parse(call) as unknown;
  } catch {
    return {};
  }
}

function googleBody({ text, reason = "STOP", call, blockReason }: WireAnswer): object {
  const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 4, totalTokenCount: 14 };
  if (blockReason !== undefined) return { promptFeedback: { blockReason }, usageMetadata };
  const parts = [
    ...(text === undefined ? [] : [{ text }]),
    ...(call === undefined ? [] : [{ functionCall: { name: "lookup", args: readOr(call) } }]),
  ];
  return {
    candidates: [{ content: { role: "model", parts }, finishReason: reason, index: 0 }],
    usageMetadata,
  };
}

const bodyOf: Readonly<Record<Wire, (answer: WireAnswer) => object>> = {
  openai: responseBody,
  "openai chat": (answer) => ({
    id: "chatcmpl_1",
    object: "chat.completion",
    created: 1,
    model: "gpt-4o",
    choices: [{ index: 0, message: chatMessage(answer), finish_reason: chatReason(answer) }],
    usage: chatUsage,
  }),
  anthropic: (answer) => ({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-5",
    content: blocksOf(answer),
    stop_reason: anthropicReason(answer),
    stop_sequence: null,
    usage: counts,
  }),
  google: googleBody,
};

const framesOf: Readonly<Record<Wire, (answer: WireAnswer) => readonly string[]>> = {
  openai: (answer) => {
    const { text, refusal, call } = answer;
    const body = responseBody(answer);
    const output = responseOutput(answer);
    const fields = { item_id: "msg_1", output_index: 0, content_index: 0 };
    return [
      event({ type: "response.created", response: { ...body, output: [] } } as never),
      ...output.flatMap((item, output_index) => [
        event({ type: "response.output_item.added", output_index, item } as never),
        ...("content" in item && text !== undefined
          ? [event({ type: "response.output_text.delta", ...fields, delta: text } as never)]
          : []),
        ...("content" in item && refusal !== undefined
          ? [event({ type: "response.refusal.delta", ...fields, delta: refusal } as never)]
          : []),
        ...("arguments" in item
          ? [
              event({
                type: "response.function_call_arguments.delta",
                item_id: "fc_1",
                output_index,
                delta: call,
              } as never),
            ]
          : []),
        event({ type: "response.output_item.done", output_index, item } as never),
      ]),
      event({
        type: answer.reason === undefined ? "response.completed" : "response.incomplete",
        response: body,
      } as never),
    ];
  },
  "openai chat": (answer) => {
    const chunk = (choice: object, more: object = {}): string =>
      frame({
        id: "chatcmpl_1",
        object: "chat.completion.chunk",
        created: 1,
        model: "gpt-4o",
        choices: [{ index: 0, ...choice }],
        ...more,
      });
    return [
      chunk({ delta: chatMessage(answer), finish_reason: null }),
      chunk({ delta: {}, finish_reason: chatReason(answer) }, { usage: chatUsage }),
      "data: [DONE]\n\n",
    ];
  },
  anthropic: (answer) => {
    const message = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "claude-sonnet-5",
      content: [],
    };
    return [
      event({ type: "message_start", message: { ...message, usage: counts } } as never),
      ...blocksOf(answer).flatMap((block, index) => [
        event({
          type: "content_block_start",
          index,
          content_block: block.type === "text" ? { type: "text", text: "" } : { ...block, input: {} },
        } as never),
        event({
          type: "content_block_delta",
          index,
          delta:
            block.type === "text"
              ? { type: "text_delta", text: answer.text }
              : { type: "input_json_delta", partial_json: answer.call },
        } as never),
        event({ type: "content_block_stop", index } as never),
      ]),
      event({
        type: "message_delta",
        delta: { stop_reason: anthropicReason(answer), stop_sequence: null },
        usage: { output_tokens: 4 },
      } as never),
      event({ type: "message_stop" }),
    ];
  },
  google: (answer) => [frame(googleBody(answer))],
};
