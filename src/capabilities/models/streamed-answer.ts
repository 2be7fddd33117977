import type { LanguageModelV3StreamPart, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import {
  readProperty,
  type AssistantPart,
  type ModelStreamPart,
  type ProviderMetadata,
  type ReportedUsage,
} from "../../kernel/index.ts";
import { metadataOf, partOf, type AiSdkUsage, type Content, type FinishReason } from "./ai-sdk-answer.ts";

/** One part of an AI SDK stream. */
export type StreamPart = LanguageModelV3StreamPart | LanguageModelV4StreamPart;

type Delta = Exclude<ModelStreamPart, { type: "finish" }>;

interface OpenBlock {
  readonly type: "text" | "reasoning";
  text: string;
  metadata: ProviderMetadata | undefined;
}

/** Assembles an answer from its stream. Its parts are in the order in which their blocks started. */
export class StreamedAnswer {
  readonly #provider: string;
  readonly #pieces: (OpenBlock | AssistantPart)[] = [];
  readonly #blocks = new Map<string, OpenBlock>();
  readonly #toolNames = new Map<string, string>();
  /** Id of the model that answered, if the provider reports it. */
  modelId: string | undefined;
  /** Finish reason and usage. `undefined` until the stream has sent its `finish` part. */
  finished: { readonly finishReason: FinishReason; readonly usage: AiSdkUsage } | undefined;

  constructor(provider: string) {
    this.#provider = provider;
  }

  /**
   * Adds a part of the stream and returns the delta for readers, if there is one. Throws the error that the stream
   * reports.
   */
  take(part: StreamPart): Delta | undefined {
    switch (part.type) {
      case "text-start":
      case "reasoning-start":
      case "text-end":
      case "reasoning-end":
        this.#block(part);
        return undefined;
      case "text-delta":
      case "reasoning-delta": {
        const block = this.#block(part);
        block.text += part.delta;
        return part.delta === "" ? undefined : { type: `${block.type}_delta`, text: part.delta };
      }
      case "tool-input-start":
        if (part.providerExecuted !== true) this.#toolNames.set(part.id, part.toolName);
        return undefined;
      case "tool-input-delta": {
        const toolName = this.#toolNames.get(part.id);
        if (toolName === undefined || part.delta === "") return undefined;
        return { type: "tool_input_delta", callId: part.id, toolName, text: part.delta };
      }
      case "response-metadata":
        this.modelId = part.modelId ?? this.modelId;
        return undefined;
      case "finish":
        this.finished = { finishReason: part.finishReason, usage: part.usage };
        return undefined;
      case "error":
        throw errorOf(part.error);
      case "tool-input-end":
      case "stream-start":
      case "ping":
        return undefined;
      case "raw":
        return earlyUsage(googleInput(part.rawValue));
      case "custom":
        return this.#custom(part);
      case "tool-call":
      case "tool-result":
      case "tool-approval-request":
      case "file":
      case "reasoning-file":
      case "source":
        return this.#keep(part);
      default:
        // A part of a later version of the specification; it contains nothing that is kept.
        return undefined;
    }
  }

  #custom(part: Extract<StreamPart, { type: "custom" }>): Delta | undefined {
    if (part.kind !== "anthropic.message_start") return this.#keep(part);
    return earlyUsage(anthropicInput(part.providerMetadata?.["anthropic"]?.["usage"]));
  }

  #keep(part: Content): undefined {
    const piece = partOf(part, this.#provider);
    if (piece !== null) this.#pieces.push(piece);
    return undefined;
  }

  /** The parts of the answer so far. */
  get content(): readonly AssistantPart[] {
    return this.#pieces.flatMap((piece): AssistantPart[] => {
      if (!("metadata" in piece)) return [piece];
      const { type, text, metadata } = piece;
      if (text === "" && metadata === undefined) return [];
      return [{ type, text, ...metadataOf(metadata) }];
    });
  }

  #block(
    part: Extract<StreamPart, { type: `${"text" | "reasoning"}-${"start" | "delta" | "end"}` }>,
  ): OpenBlock {
    const type = part.type.startsWith("text") ? "text" : "reasoning";
    const key = `${type} ${part.id}`;
    let block = part.type.endsWith("-start") ? undefined : this.#blocks.get(key);
    if (block === undefined) {
      block = { type, text: "", metadata: undefined };
      this.#blocks.set(key, block);
      this.#pieces.push(block);
    }
    block.metadata = (part.providerMetadata as ProviderMetadata | undefined) ?? block.metadata;
    return block;
  }
}

type Input = Pick<ReportedUsage, "inputTokens" | "cacheReadTokens" | "cacheWriteTokens">;

/** B3: returns the input tokens of a call that the provider reports before the answer is complete. */
function earlyUsage(input: Input | undefined): Delta | undefined {
  return input && { type: "usage", usage: { ...input, outputTokens: 0 } };
}

/**
 * Returns the input tokens that Anthropic reports with the first event of a stream. Cached input is not part of
 * `input_tokens`.
 */
function anthropicInput(usage: unknown): Input | undefined {
  const fresh = countIn(usage, "input_tokens");
  if (fresh === undefined) return undefined;
  const cacheReadTokens = countIn(usage, "cache_read_input_tokens") ?? 0;
  const cacheWriteTokens = countIn(usage, "cache_creation_input_tokens") ?? 0;
  return { inputTokens: fresh + cacheReadTokens + cacheWriteTokens, cacheReadTokens, cacheWriteTokens };
}

/** Returns the input tokens that Google reports with every chunk. Only the raw chunk contains them. */
function googleInput(chunk: unknown): Input | undefined {
  const usage = readProperty(chunk, "usageMetadata");
  const inputTokens = countIn(usage, "promptTokenCount");
  if (inputTokens === undefined) return undefined;
  const cacheReadTokens = Math.min(inputTokens, countIn(usage, "cachedContentTokenCount") ?? 0);
  return { inputTokens, cacheReadTokens };
}

function countIn(usage: unknown, name: string): number | undefined {
  const count = readProperty(usage, name);
  return typeof count === "number" && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}

/**
 * Returns an `Error` for the error of a stream, which may have any form. `classifyError` reads the cause of the
 * returned error.
 */
function errorOf(error: unknown): Error {
  return error instanceof Error
    ? error
    : new Error("the provider reported an error in its stream", { cause: error });
}
