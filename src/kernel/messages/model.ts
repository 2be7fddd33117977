import type { CancelSignal } from "../base/cancel-signal.ts";
import type { RunId } from "../base/identity.ts";
import type { JsonObject } from "../base/json-value.ts";
import type { JsonSchema } from "../base/schema.ts";
import type { CancellationToken } from "../errors/cancellation-token.ts";
import type { ClassifiedError } from "../errors/classify-error.ts";
import type { AssistantMessage, ChatMessage } from "./chat-message.ts";
import type { ProviderMetadata } from "./content.ts";
import type { StopReason } from "./llm-reply.ts";
import type { ModelPrice, Usage } from "./usage.ts";

/** The levels of how much a model reasons before it answers. Model adapters translate a level for each provider. */
export const thinkingLevels = Object.freeze(["off", "minimal", "low", "medium", "high"] as const);

/** How much a model reasons before it answers. */
export type ThinkingLevel = (typeof thinkingLevels)[number];

/** A tool that the provider of the model executes, such as its web search. */
export interface ProviderToolSpec {
  /** Id in the AI SDK: the provider and the name of the tool, such as `anthropic.web_search_20250305`. */
  readonly id: string;
  /** Arguments with which the provider sets up the tool. */
  readonly args: JsonObject;
  /** B1: how often one model call may use the tool. `null` if the provider cannot limit it. */
  readonly maxUses: number | null;
  /** Price of one use in USD, besides the tokens. */
  readonly usdPerUse: number;
  /** B1: highest number of input tokens that the result of one use adds. `null`: only the context window limits it. */
  readonly maxTokensPerUse: number | null;
}

/** A tool as the model sees it. */
export interface ToolSpec {
  /** Name by which the model calls the tool. */
  readonly name: string;
  /** Text by which the model decides when to call the tool. */
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly inputSchema: JsonSchema;
  /**
   * Name of the search tool that finds this tool (`Tool.foundBy`). Only the frozen list of a turn contains this field;
   * requests to a model do not.
   */
  readonly foundBy?: string;
  /** Present if the provider of the model executes the tool. */
  readonly provider?: ProviderToolSpec;
}

/** Whether the model may or must call a tool. */
export type ToolChoice =
  /** The model decides. */
  | "auto"
  /** The model must not call a tool. */
  | "none"
  /** The model must call at least one tool. */
  | "required"
  /** The model must call this tool. */
  | { readonly toolName: string };

/** Format of the model's answer: text, or JSON that matches a schema. */
export type ResponseFormat =
  | { readonly type: "text" }
  | {
      readonly type: "json";
      readonly schema?: JsonSchema;
      readonly name?: string;
      readonly description?: string;
    };

/** Settings for providers, by provider name. They are passed on unchanged. */
export type ProviderOptions = ProviderMetadata;

/** A request to a model. */
export interface ModelRequest {
  /** The conversation. A system message, if any, comes first. */
  readonly messages: readonly ChatMessage[];
  /** The tools that the model may call. */
  readonly tools?: readonly ToolSpec[];
  /** Whether the model may or must call a tool. Default: the provider's, usually `auto`. */
  readonly toolChoice?: ToolChoice;
  /** Format of the answer. Default: text. */
  readonly responseFormat?: ResponseFormat;
  /** Maximum number of tokens of the answer. */
  readonly maxOutputTokens?: number;
  /** Sampling temperature. Default: the provider's. */
  readonly temperature?: number;
  /**
   * Nucleus sampling: the model chooses among the most probable tokens whose probabilities add up to this share,
   * from 0 to 1.
   */
  readonly topP?: number;
  /** The model chooses among this many most probable tokens. */
  readonly topK?: number;
  /** Seed of the sampling, for providers that can repeat an answer. */
  readonly seed?: number;
  /** Makes tokens less probable that already occur in the text. Default: the provider's. */
  readonly presencePenalty?: number;
  /** Makes tokens less probable the more often they occur in the text. Default: the provider's. */
  readonly frequencyPenalty?: number;
  /** Texts that end the answer when the model writes them. */
  readonly stopSequences?: readonly string[];
  /** How much the model reasons before it answers. Default: the provider's. */
  readonly thinkingLevel?: ThinkingLevel;
  /** Settings for the provider. */
  readonly providerOptions?: ProviderOptions;
}

/** The run on whose behalf a model is called. `RunMeta` satisfies this interface. */
export interface ModelCallMeta {
  /** Id of the run. */
  readonly runId: RunId;
  /** Token that is cancelled with the task. */
  readonly cancellation: CancellationToken;
  /** Deadline of the task in epoch milliseconds. `null` means no deadline. */
  readonly deadline: number | null;
  /** Id of the trace, the same in the whole run. */
  readonly traceId: string;
  /** Id of the task's span. */
  readonly spanId: string;
  /** Id of the tenant. `null` for a run without a tenant. */
  readonly tenantId: string | null;
  /** C2: throws `CancellationError` after a cancel or after the deadline. */
  check(): void;
}

/** Options of one model call. */
export interface ModelCallOptions {
  /** Cancels the call when it aborts. */
  readonly signal?: CancelSignal;
  /**
   * Key under which a provider may cache the beginning of the prompt. It is the same for all calls of a session and
   * does not reveal the session id. Absent for a call outside any run.
   */
  readonly promptCacheKey?: string;
  /**
   * Whether the request marks the positions up to which the provider may cache the prompt. Default: `true` for
   * providers that cache only marked parts (Anthropic).
   */
  readonly promptCache?: boolean;
  /**
   * Number of messages at the end of the request that the next request will not repeat. Caching them is useless.
   * Default: 0.
   */
  readonly ephemeralMessages?: number;
  /** The run that makes the call, for tracing and tenants. Absent for a call outside any run. */
  readonly meta?: ModelCallMeta;
}

/** The answer of a model. */
export interface ModelResponse {
  /** The model's message. */
  readonly message: AssistantMessage;
  /** Why the model stopped. */
  readonly stopReason: StopReason;
  /** Usage that the provider reported. A response without it fails the call, which is charged as unreported (B3). */
  readonly usage: ReportedUsage;
  /** Id of the model that answered, as the provider reports it. May differ from the requested id. */
  readonly modelId?: string;
  /**
   * B3: how often the provider has executed each of its tools, by the name of the tool. If it is absent and the request had such
   * tools, the call is charged all the uses that were possible.
   */
  readonly providerToolUses?: Readonly<Record<string, number>>;
}

/**
 * Usage that a provider reported. Default of the cache and reasoning tokens: 0. `costUsd` is present only if the provider
 * reports it; otherwise the price table gives the cost.
 */
export type ReportedUsage = Pick<Usage, "inputTokens" | "outputTokens"> &
  Partial<Pick<Usage, "cacheReadTokens" | "cacheWriteTokens" | "reasoningTokens">> & {
    readonly costUsd?: number;
  };

/**
 * The error of a call whose answer failed after the provider had reported its usage. The runtime charges that
 * usage.
 */
export class FailedAnswerError extends Error {
  readonly usage: ReportedUsage;

  constructor(message: string, usage: ReportedUsage) {
    super(message);
    this.name = "FailedAnswerError";
    this.usage = usage;
  }
}

/**
 * One piece of a streamed answer. Every successful stream ends with exactly one `finish`. A provider that reports
 * the input tokens before the end sends them as `usage`: if the call then ends without its usage, these tokens and
 * the output limit are charged (B3). The output tokens of `usage` are ignored.
 */
export type ModelStreamPart =
  | { readonly type: "text_delta"; readonly text: string }
  | { readonly type: "reasoning_delta"; readonly text: string }
  | {
      readonly type: "tool_input_delta";
      readonly callId: string;
      readonly toolName: string;
      readonly text: string;
    }
  | { readonly type: "usage"; readonly usage: ReportedUsage }
  | ({ readonly type: "finish" } & ModelResponse);

/** Selects the models that may answer a request, and decides when to fall back to the next one. */
export interface ModelChoice {
  /** Returns the candidate models in the order in which they are tried. There is at least one. */
  candidates(request: ModelRequest, task: { readonly role: string }): readonly Model[];
  /**
   * Whether the next candidate is tried after this error. It is not called once readers have seen a part of the
   * answer.
   */
  shouldFallBack(error: ClassifiedError): boolean;
}

/**
 * A language model. `generate` and `stream` throw the provider's own error, which `classifyError` interprets, and stop
 * promptly when the signal aborts.
 *
 * - A `Fault` thrown before the first part means that nothing was sent and nothing was billed.
 * - A stream that ends without `finish` is incomplete. The caller treats it as an error, never as a short answer.
 * - `finish` contains the complete message, equal to the result of `generate`.
 */
export interface Model {
  /** Name of the provider. */
  readonly provider: string;
  /** Id of the model at the provider. */
  readonly modelId: string;
  /** Size of the context window, in tokens. Absent if unknown. */
  readonly contextWindow?: number;
  /** Maximum number of tokens of one answer. Absent if unknown. */
  readonly maxOutputTokens?: number;
  /**
   * B1: output limit of a request that states none, if a cap applies to the task. Default: 8,192, or
   * `maxOutputTokens` if that is lower.
   */
  readonly defaultOutputTokens?: number;
  /**
   * Whether the provider enforces the schema of `responseFormat`. If `true`, the schema is sent only as a setting
   * of the request. If absent, this is unknown, and the schema is also part of the instructions.
   */
  readonly supportsStructuredOutput?: boolean;
  /**
   * Present for a model that chooses among several models. The runtime calls the candidates itself, so that each
   * call is reserved and charged at the candidate's price.
   */
  readonly choice?: ModelChoice;
  /**
   * Returns the input tokens that the provider bills for the request, without generating an answer. B1: the runtime
   * reserves this number, so that it must not be lower than the bill. The runtime calls it only if the bound of one
   * token per byte does not fit into a budget. Absent if the provider offers no count.
   */
  countTokens?(request: ModelRequest, options?: ModelCallOptions): Promise<number>;
  /** Returns the complete answer. */
  generate(request: ModelRequest, options?: ModelCallOptions): Promise<ModelResponse>;
  /** Returns the answer piece by piece. */
  stream(request: ModelRequest, options?: ModelCallOptions): AsyncIterable<ModelStreamPart>;
}

/** Returns the cost of reported usage in USD. `null` if the provider reported no cost and the price is unknown. */
export function priceUsage(price: ModelPrice | null, usage: ReportedUsage): number | null {
  if (usage.costUsd !== undefined) return usage.costUsd;
  if (price === null) return null;
  const {
    inputUsd,
    outputUsd,
    cacheReadUsd = inputUsd,
    cacheWriteUsd = inputUsd,
    reasoningUsd = outputUsd,
    requestUsd = 0,
  } = price;
  const { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0 } = usage;
  return (
    requestUsd +
    Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens) * inputUsd +
    cacheReadTokens * cacheReadUsd +
    cacheWriteTokens * cacheWriteUsd +
    Math.max(0, outputTokens - reasoningTokens) * outputUsd +
    reasoningTokens * reasoningUsd
  );
}
