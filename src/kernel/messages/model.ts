import type { ClassifiedError } from "../errors/classify-error.ts";
import type { CancelSignal } from "../base/cancel-signal.ts";
import type { AssistantMessage, ChatMessage } from "./chat-message.ts";
import type { ProviderMetadata } from "./content.ts";
import type { JsonSchema } from "../base/schema.ts";
import type { StopReason } from "./stop-reason.ts";
import type { Usage } from "./usage.ts";

/** A tool as the model is told of it. */
export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
}

export type ToolChoice =
  | "auto"
  | "none"
  /** Some tool, whichever. */
  | "required"
  | { readonly toolName: string };

export type ResponseFormat =
  | { readonly type: "text" }
  | {
      readonly type: "json";
      readonly schema?: JsonSchema;
      readonly name?: string;
      readonly description?: string;
    };

/** Settings for one provider, under its name; passed through unread. */
export type ProviderOptions = ProviderMetadata;

export interface ModelRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly ToolSpec[];
  readonly toolChoice?: ToolChoice;
  readonly responseFormat?: ResponseFormat;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly stopSequences?: readonly string[];
  readonly providerOptions?: ProviderOptions;
}

export interface ModelCallOptions {
  readonly signal?: CancelSignal;
}

export interface ModelResponse {
  readonly message: AssistantMessage;
  readonly stopReason: StopReason;
  readonly usage: ReportedUsage;
  /** The id the provider says answered; may differ from the one asked. */
  readonly modelId?: string;
}

/** What the provider reported. Dollars are the price table's to say, unless the provider says them itself. */
export type ReportedUsage = Omit<Usage, "costUsd"> & { readonly costUsd?: number };

/** One piece of a streamed answer. Exactly one `finish` ends a stream that succeeded. */
export type ModelStreamPart =
  | { readonly type: "text_delta"; readonly text: string }
  | { readonly type: "reasoning_delta"; readonly text: string }
  | {
      readonly type: "tool_input_delta";
      readonly callId: string;
      readonly toolName: string;
      readonly text: string;
    }
  | ({ readonly type: "finish" } & ModelResponse);

/** Which models may answer a request, and when the next of them is asked. */
export interface ModelChoice {
  /** In the order in which they are asked; at least one. */
  candidates(request: ModelRequest, task: { readonly role: string }): readonly Model[];
  /** Whether this failure passes the request on to the next. Not asked once a piece of the answer was shown. */
  shouldFallBack(error: ClassifiedError): boolean;
}

/**
 * A language model. Both calls throw the provider's own error, unmapped; `classifyError` reads it. They stop promptly
 * when the signal aborts.
 *
 * - A `Fault` thrown before the first part means that nothing was sent and nothing can have been billed.
 * - A stream that ends without `finish` was cut: the caller treats it as an error, never as a short answer.
 * - `finish` carries the whole message, equal to what `generate` would have returned.
 */
export interface Model {
  readonly provider: string;
  readonly modelId: string;
  /** Tokens it can read and write in one call, where that is known. */
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
  /** Of a model that stands for others. The runtime calls those, so that each call is reserved and paid at its own price. */
  readonly choice?: ModelChoice;
  generate(request: ModelRequest, options?: ModelCallOptions): Promise<ModelResponse>;
  stream(request: ModelRequest, options?: ModelCallOptions): AsyncIterable<ModelStreamPart>;
}
