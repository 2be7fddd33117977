import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { toModel } from "../../src/capabilities/index.ts";
import {
  classifyError,
  errorKinds,
  userMessage,
  type ClassifiedError,
  type ErrorKind,
  type Model,
} from "../../src/kernel/index.ts";
import { mockProviders, partsOf, providerKeys, type MockProviders } from "./mock-providers.ts";

interface Told {
  readonly status: number;
  readonly message: string;
  readonly type?: string;
  readonly code?: string;
}

/** Each error kind as an HTTP response that any of these servers could send. */
const told: Readonly<Record<ErrorKind, Told>> = {
  rate_limit: { status: 429, message: "Rate limit reached", type: "rate_limit_error" },
  overloaded: { status: 529, message: "Overloaded", type: "overloaded_error" },
  server_error: { status: 500, message: "Something broke", type: "api_error" },
  timeout: { status: 504, message: "The upstream did not answer", type: "timeout_error" },
  context_overflow: {
    status: 400,
    message: "This model's maximum context length is 8192 tokens",
    type: "invalid_request_error",
    code: "context_length_exceeded",
  },
  unknown: { status: 409, message: "Conflict" },
  auth: { status: 401, message: "Incorrect API key provided", type: "authentication_error" },
  auth_permanent: { status: 403, message: "Your organization has been disabled", type: "permission_error" },
  billing: { status: 402, message: "Your credit balance is too low", type: "billing_error" },
  model_not_found: { status: 404, message: "The model `x` does not exist", type: "not_found_error" },
  content_blocked: { status: 400, message: "Output blocked by content filtering policy" },
  format_error: { status: 400, message: "tools.0.name: field required", type: "invalid_request_error" },
};

let providers: MockProviders;
let cutter: Server;
let cutUrl = "";
beforeAll(async () => {
  providers = await mockProviders();
  const { mock } = providers;
  for (const [kind, { status, ...error }] of Object.entries(told))
    mock.on(
      { userMessage: `kind ${kind}.` },
      { error, status, ...(status === 429 ? { retryAfter: 7 } : {}) },
    );
  const long = { content: "Hello there, friend of mine, and so on and so forth." };
  mock.on({ userMessage: "socket cut" }, long, { chunkSize: 4, truncateAfterChunks: 4, latency: 2 });
  mock.on({ userMessage: "never answered" }, long, { chaos: { disconnectRate: 1 } });
  mock.on({ userMessage: "malformed" }, long, { chaos: { malformedRate: 1 } });
  cutter = createServer((request, response) => cutPolitely(request.url ?? "", response));
  await new Promise<void>((resolve) => cutter.listen(0, "127.0.0.1", resolve));
  cutUrl = `http://127.0.0.1:${(cutter.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await providers.stop();
  cutter.closeAllConnections();
  cutter.close();
});

const asking = (text: string) => ({ messages: [userMessage(text)] });

async function failureOf(call: Promise<unknown>): Promise<ClassifiedError> {
  try {
    await call;
  } catch (error) {
    return classifyError(error);
  }
  throw new Error("the call did not fail");
}

/** Returns a stream that ends regularly before its answer is complete, as a proxy may cause it. */
function cutPolitely(url: string, response: ServerResponse): void {
  const chat = (delta: object): string =>
    `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta }] })}\n\n`;
  const event = (data: { type: string }): string => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
  const usage = { input_tokens: 3, output_tokens: 1 };
  const frames = url.includes("messages")
    ? [
        event({
          type: "message_start",
          message: { id: "m", type: "message", role: "assistant", model: "m", content: [], usage },
        } as never),
        event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } } as never),
        event({
          type: "content_block_delta",
          index: 0,
          delta: { type: "text_delta", text: "Hello" },
        } as never),
      ]
    : url.includes("responses")
      ? [
          event({ type: "response.created", response: { id: "r", created_at: 1, model: "m" } } as never),
          event({
            type: "response.output_item.added",
            output_index: 0,
            item: { type: "message", id: "msg" },
          } as never),
          event({ type: "response.output_text.delta", item_id: "msg", delta: "Hello" } as never),
        ]
      : url.includes("Content")
        ? [
            `data: ${JSON.stringify({ candidates: [{ content: { role: "model", parts: [{ text: "Hello" }] } }] })}\n\n`,
          ]
        : [chat({ role: "assistant", content: "Hel" }), chat({ content: "lo" })];
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(frames.join(""));
}

describe.each(providerKeys)("an error of a model of %s", (key) => {
  const model = () => providers.models[key];

  test.each(Object.keys(errorKinds) as ErrorKind[])(
    "an error of a provider is classified as %s, for whole and streamed answers",
    async (kind) => {
      const { status } = told[kind];
      const wait = kind === "rate_limit" ? { retryAfterMs: 7_000 } : {};
      const expected = { kind, status, retryable: errorKinds[kind].retryable, ...wait };
      expect(await failureOf(model().generate(asking(`kind ${kind}.`)))).toMatchObject(expected);
      expect(await failureOf(partsOf(model(), asking(`kind ${kind}.`)))).toMatchObject(expected);
    },
  );

  test("a model call throws if the socket closes in the middle of an answer", async () => {
    const seen: string[] = [];
    const read = async () => {
      for await (const part of model().stream(asking("socket cut"))) seen.push(part.type);
    };
    expect(await failureOf(read())).toMatchObject({ kind: "server_error", retryable: true });
    expect(seen).not.toContain("finish");
  });

  test("the error of a model call has no status if the server closes the connection", async () => {
    const failure = await failureOf(model().generate(asking("never answered")));
    expect(failure).toMatchObject({ kind: "server_error" });
    expect(failure.status).toBeUndefined();
    expect(await failureOf(partsOf(model(), asking("never answered")))).toMatchObject({
      kind: "server_error",
    });
  });

  test("a model call throws for malformed JSON, for whole and streamed answers", async () => {
    expect(await failureOf(model().generate(asking("malformed")))).toMatchObject({ kind: "server_error" });
    expect(await failureOf(partsOf(model(), asking("malformed")))).toMatchObject({ kind: "server_error" });
  });
});

describe("a model stream that ends regularly before its answer is complete", () => {
  const models = (): Readonly<Record<string, Model>> => {
    const common = { apiKey: "not-a-key" };
    const openai = createOpenAI({ ...common, baseURL: cutUrl });
    return {
      openai: toModel(openai("gpt-5")),
      "openai chat": toModel(openai.chat("gpt-4o")),
      anthropic: toModel(createAnthropic({ ...common, baseURL: cutUrl })("claude-sonnet-5")),
      google: toModel(createGoogle({ ...common, baseURL: cutUrl })("gemini-3-pro")),
      "openai-compatible": toModel(
        createOpenAICompatible({ ...common, name: "local", baseURL: cutUrl })("some-model"),
      ),
    };
  };

  test.each(providerKeys)(
    "a model stream that ends regularly before its answer is complete throws after its parts: %s",
    async (key) => {
      const seen: string[] = [];
      const read = async () => {
        for await (const part of models()[key]?.stream(asking("hello")) ?? [])
          if (part.type !== "usage") seen.push(part.type === "text_delta" ? part.text : part.type);
      };
      expect(await failureOf(read())).toMatchObject({ kind: "server_error", retryable: true });
      expect(seen.join("")).toBe("Hello");
    },
  );
});

test("an unreachable model server is an error that can be retried, and its message says so", async () => {
  const gone = createServer();
  await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
  const baseURL = `http://127.0.0.1:${(gone.address() as AddressInfo).port}`;
  await new Promise((resolve) => gone.close(resolve));
  const model = toModel(createOpenAICompatible({ name: "local", baseURL, apiKey: "x" })("some-model"));
  expect(await failureOf(model.generate(asking("hello")))).toMatchObject({
    kind: "server_error",
    retryable: true,
    providerCode: "ECONNREFUSED",
  });
});
