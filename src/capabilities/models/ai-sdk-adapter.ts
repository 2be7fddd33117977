import type {
  LanguageModelV3CallOptions,
  LanguageModelV3GenerateResult,
  LanguageModelV3StreamResult,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamResult,
} from "@ai-sdk/provider";
import {
  type AssistantMessage,
  type AssistantPart,
  type ChatMessage,
  FailedAnswerError,
  Fault,
  type JsonObject,
  type Model,
  type ModelCallOptions,
  type ModelRequest,
  type ModelResponse,
  type ModelStreamPart,
  type ReportedUsage,
  type StopReason,
  messageText,
  samplingNames,
  toolCallsOf,
} from "../../kernel/index.ts";
import {
  type AiSdkUsage,
  type CountedUsage,
  type FinishReason,
  partOf,
  stopReasonOf,
  usageOf,
} from "./ai-sdk-answer.ts";
import { providerName, structuredProviders, type AiSdkModel } from "./ai-sdk-model.ts";
import { promptFor, schemaNote, type PromptTarget } from "./ai-sdk-prompt.ts";
import type { AddressCheckOptions } from "../web/address-check.ts";
import { ImageDownloads } from "./image-download.ts";
import type { SupportedUrls } from "./inline-media.ts";
import { modelLimits } from "./model-limits.ts";
import { StreamedAnswer, type StreamPart } from "./streamed-answer.ts";
import { markByDefault, takesCacheKey, withCacheKey } from "./prompt-cache.ts";
import { countUses, sentTools, withUseLimit } from "./sent-tools.ts";
import { strictFormat } from "./strict-schema.ts";
import { thinkingFor } from "./thinking.ts";

/**
 * B1: returns the output limit to send to the AI SDK, so that reasoning is included in the limit. The Anthropic
 * provider adds the thinking budget to the limit that it receives. Therefore this function subtracts the budget.
 */
export function outputLimit({ maxOutputTokens, providerOptions }: ModelRequest): number | undefined {
  const thinking = providerOptions?.["anthropic"]?.["thinking"];
  if (maxOutputTokens === undefined || !isObject(thinking) || thinking["type"] !== "enabled")
    return maxOutputTokens;
  const { budgetTokens = 1_024 } = thinking as { readonly budgetTokens?: number };
  if (budgetTokens < maxOutputTokens) return maxOutputTokens - budgetTokens;
  throw new Fault(
    "invalid_argument",
    `the thinking budget of ${budgetTokens} tokens uses up the output limit of ${maxOutputTokens}: lower budgetTokens, or raise maxOutputTokens or the run's budget`,
  );
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * B1: adds totals that the provider did not report. An unknown total counts as its upper bound, one token per byte
 * of text, and never as zero.
 */
function boundUsage(
  usage: CountedUsage,
  { messages, maxOutputTokens = Number.POSITIVE_INFINITY }: ModelRequest,
  answer: AssistantMessage,
): ReportedUsage {
  const { inputTokens, outputTokens, ...rest } = usage;
  return {
    ...rest,
    inputTokens: inputTokens ?? messages.reduce((sum, message) => sum + textBytes(message), 0),
    outputTokens: outputTokens ?? Math.min(textBytes(answer), maxOutputTokens),
  };
}

function textBytes(message: ChatMessage): number {
  const inputs =
    message.role === "assistant"
      ? message.content.map((part) => (part.type === "tool_call" ? JSON.stringify(part.input) : ""))
      : [];
  return Buffer.byteLength([messageText(message), ...inputs].join(""));
}

type CallOptions = LanguageModelV3CallOptions | LanguageModelV4CallOptions;

/** The members of a V3 or V4 model that the adapter uses. */
interface CallableModel {
  readonly supportedUrls?: PromiseLike<SupportedUrls> | SupportedUrls;
  readonly supportsStructuredOutputs?: boolean;
  doGenerate(
    options: CallOptions,
  ): PromiseLike<LanguageModelV3GenerateResult | LanguageModelV4GenerateResult>;
  doStream(options: CallOptions): PromiseLike<LanguageModelV3StreamResult | LanguageModelV4StreamResult>;
}

/**
 * Error text for a stream that ended early. `classifyError` reads "premature close" as a `server_error`, which is
 * retried.
 */
const cut = "the stream ended before the answer was complete: premature close of the connection";

const asksForResults: ReadonlySet<StopReason> = new Set<StopReason>(["stop", "pause", "other"]);

/**
 * Adapts an AI SDK language model to `Model`. It calls the model below the SDK's own retries, so that only the runtime
 * retries.
 */
export class AiSdkAdapter implements Model {
  readonly provider: string;
  readonly modelId: string;
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
  readonly supportsStructuredOutput?: boolean;
  readonly #model: CallableModel;
  readonly #images: ImageDownloads;
  readonly #version: PromptTarget["version"];

  /** `images` determines from which addresses images are downloaded that the provider does not fetch itself. */
  constructor(model: AiSdkModel, images: AddressCheckOptions = {}) {
    this.#model = model as unknown as CallableModel;
    this.#version = model.specificationVersion;
    this.provider = providerName(model.provider);
    this.modelId = model.modelId;
    this.#images = new ImageDownloads(this.provider, images);
    Object.assign(this, modelLimits(this.provider, this.modelId));
    const isSupported = this.#model.supportsStructuredOutputs ?? structuredProviders.has(this.provider);
    if (isSupported) this.supportsStructuredOutput = true;
  }

  /** Sends a request and returns the whole response. */
  async generate(request: ModelRequest, options: ModelCallOptions = {}): Promise<ModelResponse> {
    const { content, finishReason, usage, response } = await this.#model.doGenerate(
      await this.#callOptions(request, options),
    );
    const parts = content.flatMap((each) => partOf(each, this.provider) ?? []);
    return this.#answer(request, { parts, finishReason, usage, modelId: response?.modelId, streamed: false });
  }

  /**
   * Sends a request and yields its deltas, then a `finish` part with the whole response. Anthropic and Google report the
   * input before the end; other providers report no usage until then.
   */
  async *stream(request: ModelRequest, options: ModelCallOptions = {}): AsyncIterable<ModelStreamPart> {
    const { stream } = await this.#model.doStream({
      ...(await this.#callOptions(request, options)),
      ...(this.provider === "google" && { includeRawChunks: true }),
    });
    const answer = new StreamedAnswer(this.provider);
    for await (const part of stream as unknown as AsyncIterable<StreamPart>) {
      const delta = answer.take(part);
      if (delta !== undefined) yield delta;
    }
    const { finished, content: parts, modelId } = answer;
    if (finished === undefined) throw new Error(cut);
    yield { type: "finish", ...this.#answer(request, { ...finished, parts, modelId, streamed: true }) };
  }

  #answer(
    request: ModelRequest,
    answer: {
      readonly parts: readonly AssistantPart[];
      readonly finishReason: FinishReason;
      readonly usage: AiSdkUsage;
      readonly modelId: string | undefined;
      readonly streamed: boolean;
    },
  ): ModelResponse {
    const { parts, finishReason, usage, modelId, streamed } = answer;
    const stopReason = stopReasonOf(finishReason, streamed);
    const counted = usageOf(usage, this.provider);
    if (stopReason === null) {
      const { raw } = finishReason;
      const reason = raw === undefined ? "" : ` with the finish reason ${JSON.stringify(raw)}`;
      // The counts of a stream that was cut are those so far.
      if (streamed && raw === undefined) throw new Error(cut);
      const problem = `the provider reported that the answer failed${reason}: server_error`;
      const { inputTokens, outputTokens } = counted;
      if (inputTokens === null || outputTokens === null) throw new Error(problem);
      throw new FailedAnswerError(problem, { ...counted, inputTokens, outputTokens });
    }
    const message = { role: "assistant", content: parts } as const;
    // Some servers report tool calls as "stop", or with an unknown reason. A paused turn with calls waits for results.
    const uses = countUses(request, parts);
    const calls = asksForResults.has(stopReason) && toolCallsOf(message).length > 0;
    return {
      message,
      stopReason: calls ? "tool_calls" : stopReason,
      usage: boundUsage(counted, request, message),
      ...(uses !== undefined && { providerToolUses: uses }),
      ...(modelId === undefined ? {} : { modelId }),
    };
  }

  async #callOptions(whole: ModelRequest, call: ModelCallOptions): Promise<CallOptions> {
    const { signal } = call;
    const { provider, maxOutputTokens: mostOutput } = this;
    const model = { provider, version: this.#version, maxOutputTokens: mostOutput };
    const { reasoning, ...thinking } = thinkingFor(whole, model);
    const request = { ...whole, ...thinking };
    const { tools, toolChoice, stopSequences } = request;
    const { responseFormat, providerOptions: given } = strictFormat(
      this.provider,
      request,
      this.#model.supportsStructuredOutputs === true,
    );
    const limitedOptions = withUseLimit(given, tools);
    const providerOptions = takesCacheKey(this.provider, this.#model)
      ? withCacheKey(limitedOptions, call.promptCacheKey)
      : limitedOptions;
    const supportedUrls = (await this.#model.supportedUrls) ?? {};
    const target = {
      version: this.#version,
      provider: this.provider,
      supportedUrls,
      downloaded: await this.#images.load(request.messages, supportedUrls, signal),
    };
    const maxOutputTokens = outputLimit(request);
    return {
      prompt: promptFor(markByDefault(provider, this.#messages(request), call), target),
      ...(tools === undefined || tools.length === 0 ? {} : { tools: sentTools(tools, this) }),
      ...(toolChoice === undefined || tools === undefined || tools.length === 0
        ? {}
        : {
            toolChoice:
              typeof toolChoice === "string"
                ? { type: toolChoice }
                : { type: "tool", toolName: toolChoice.toolName },
          }),
      ...(responseFormat === undefined ? {} : { responseFormat }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
      ...samplingOf(request),
      ...(reasoning === undefined ? {} : { reasoning }),
      ...(stopSequences === undefined ? {} : { stopSequences: [...stopSequences] }),
      ...(providerOptions === undefined ? {} : { providerOptions }),
      ...(signal === undefined ? {} : { abortSignal: signal }),
    } as CallOptions;
  }

  /**
   * Returns the messages. If the provider has no parameter for an output schema, a system message with the schema is
   * added, except if a system message contains it already.
   */
  #messages({ messages, responseFormat }: ModelRequest): ModelRequest["messages"] {
    if (responseFormat?.type !== "json" || responseFormat.schema === undefined) return messages;
    if (this.#model.supportsStructuredOutputs !== false) return messages;
    const schemaText = JSON.stringify(responseFormat.schema);
    if (messages.some(({ role, content }) => role === "system" && content.includes(schemaText)))
      return messages;
    const first = messages.findIndex(({ role }) => role !== "system");
    const at = first < 0 ? messages.length : first;
    return [...messages.slice(0, at), schemaNote(responseFormat.schema), ...messages.slice(at)];
  }
}

/** The sampling settings that a request has. The AI SDK uses the same names. */
function samplingOf(request: ModelRequest): Partial<CallOptions> {
  const present = samplingNames.filter((name) => request[name] !== undefined);
  return Object.fromEntries(present.map((name) => [name, request[name]]));
}
