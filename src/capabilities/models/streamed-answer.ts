import type { LanguageModelV3StreamPart, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { AssistantPart, ModelStreamPart, ProviderMetadata } from "../../kernel/index.ts";
import { metadataOf, partOf, type AiSdkUsage, type FinishReason } from "./ai-sdk-answer.ts";

export type StreamPart = LanguageModelV3StreamPart | LanguageModelV4StreamPart;

type Delta = Exclude<ModelStreamPart, { type: "finish" }>;

interface OpenBlock {
  readonly type: "text" | "reasoning";
  text: string;
  metadata: ProviderMetadata | undefined;
}

/** Puts an answer together from its stream, in the order in which its blocks began. */
export class StreamedAnswer {
  readonly #provider: string;
  readonly #pieces: (OpenBlock | AssistantPart)[] = [];
  readonly #blocks = new Map<string, OpenBlock>();
  readonly #toolNames = new Map<string, string>();
  modelId: string | undefined;
  finished: { readonly finishReason: FinishReason; readonly usage: AiSdkUsage } | undefined;

  constructor(provider: string) {
    this.#provider = provider;
  }

  /** Takes a part in; what of it watchers are shown, if anything. Throws what the stream says went wrong. */
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
      case "raw":
      case "ping":
        return undefined;
      case "tool-call":
      case "tool-result":
      case "tool-approval-request":
      case "custom":
      case "file":
      case "reasoning-file":
      case "source": {
        const piece = partOf(part, this.#provider);
        if (piece !== null) this.#pieces.push(piece);
        return undefined;
      }
      default:
        // A part of a later version of the specification, which says nothing we keep.
        return undefined;
    }
  }

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

/** Streams carry errors of any shape; only an `Error` has a stack. `classifyError` reads the cause. */
function errorOf(error: unknown): Error {
  return error instanceof Error
    ? error
    : new Error("the provider reported an error in its stream", { cause: error });
}
