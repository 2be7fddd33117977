import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { LLMock } from "@copilotkit/aimock";
import { toModel } from "../../src/capabilities/index.ts";
import type { JsonObject, Model, ModelRequest, ModelStreamPart } from "../../src/kernel/index.ts";

export type ProviderKey = "openai" | "openai chat" | "anthropic" | "google" | "openai-compatible";

export interface MockProviders {
  readonly mock: LLMock;
  readonly url: string;
  readonly models: Readonly<Record<ProviderKey, Model>>;
  /** Request bodies as they were sent, the newest last. */
  readonly sent: JsonObject[];
  readonly stop: () => Promise<void>;
}

export const providerKeys: readonly ProviderKey[] = [
  "openai",
  "openai chat",
  "anthropic",
  "google",
  "openai-compatible",
];

/** Starts a model server on this machine, and creates models of the real provider packages that use it. */
export async function mockProviders(): Promise<MockProviders> {
  const mock = new LLMock({ port: 0, host: "127.0.0.1", logLevel: "silent", journalMaxEntries: 100_000 });
  const url = await mock.start();
  const sent: JsonObject[] = [];
  const common = { apiKey: "not-a-key", fetch: spying(sent) };
  const openai = createOpenAI({ ...common, baseURL: `${url}/v1` });
  const local = { ...common, name: "local", baseURL: `${url}/v1`, includeUsage: true };
  return {
    mock,
    url,
    sent,
    models: {
      openai: toModel(openai("gpt-5")),
      "openai chat": toModel(openai.chat("gpt-4o")),
      anthropic: toModel(createAnthropic({ ...common, baseURL: `${url}/v1` })("claude-sonnet-5")),
      google: toModel(createGoogle({ ...common, baseURL: `${url}/v1beta` })("gemini-3-pro")),
      "openai-compatible": toModel(createOpenAICompatible(local)("some-model")),
    },
    stop: () => mock.stop(),
  };
}

function spying(sent: JsonObject[]): typeof fetch {
  return (input, init) => {
    if (typeof init?.body === "string") sent.push(JSON.parse(init.body) as JsonObject);
    return fetch(input, init);
  };
}

/** Returns the same token counts in the format of every provider. */
export function usage(input: number, output: number) {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    input_tokens: input,
    output_tokens: output,
    promptTokenCount: input,
    candidatesTokenCount: output,
  };
}

export async function partsOf(
  model: Model,
  request: ModelRequest,
  signal?: AbortSignal,
): Promise<ModelStreamPart[]> {
  const parts: ModelStreamPart[] = [];
  for await (const part of model.stream(request, signal === undefined ? {} : { signal })) parts.push(part);
  return parts;
}
