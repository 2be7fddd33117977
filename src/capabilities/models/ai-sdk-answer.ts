import type {
  LanguageModelV3Content,
  LanguageModelV3FinishReason,
  LanguageModelV3Usage,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import {
  deepestJson,
  JsonCounter,
  type AssistantPart,
  type FilePart,
  type JsonObject,
  type JsonValue,
  type ProviderMetadata,
  type ReportedUsage,
  type StopReason,
} from "../../kernel/index.ts";

/** One content part of an AI SDK response. */
export type Content = LanguageModelV3Content | LanguageModelV4Content;
/** Finish reason of an AI SDK response. */
export type FinishReason = LanguageModelV3FinishReason | LanguageModelV4FinishReason;
/** Token usage of an AI SDK response. */
export type AiSdkUsage = LanguageModelV3Usage | LanguageModelV4Usage;

/** Converts a content part of the AI SDK to an `AssistantPart`. Returns `null` for a part that is not kept. */
export function partOf(content: Content, provider: string): AssistantPart | null {
  const metadata = metadataOf(content.providerMetadata);
  switch (content.type) {
    case "text":
      return { type: "text", text: content.text, ...metadata };
    case "reasoning":
      return { type: "reasoning", text: content.text, ...metadata };
    case "file":
      return { type: "file", mediaType: content.mediaType, source: mediaSource(content.data), ...metadata };
    case "tool-call": {
      const { toolCallId, toolName, providerExecuted } = content;
      const input = readInput(content.input);
      if (providerExecuted !== true)
        return { type: "tool_call", callId: toolCallId, toolName, input, ...metadata };
      const value = { type: "tool-call", toolCallId, toolName, input, providerExecuted };
      return { type: "opaque", provider, value, ...metadata };
    }
    case "tool-result": {
      const { toolCallId, toolName, result, isError, preliminary } = content;
      if (preliminary === true) return null;
      const output = { type: isError === true ? "error-json" : "json", value: plain(result) };
      const value = { type: "tool-result", toolCallId, toolName, output };
      return { type: "opaque", provider, value, ...metadata };
    }
    case "reasoning-file": {
      const { mediaType, data } = content;
      const source = mediaSource(data);
      const kept =
        source.kind === "url" ? { type: "url", url: source.url } : { type: "data", data: source.data };
      return {
        type: "opaque",
        provider,
        value: { type: "reasoning-file", mediaType, data: kept },
        ...metadata,
      };
    }
    case "custom":
      // Anthropic's marker at the start of a stream; it has no content.
      if (content.kind === "anthropic.message_start") return null;
      return opaque(content, provider);
    case "source":
    case "tool-approval-request":
      return opaque(content, provider);
  }
}

function opaque({ providerMetadata, ...rest }: Content, provider: string): AssistantPart {
  return { type: "opaque", provider, value: plain(rest) as JsonObject, ...metadataOf(providerMetadata) };
}

/** Reasons of providers that their packages unify with others, or that older versions of them do not know. */
const rawReasons: Readonly<Record<string, StopReason>> = {
  pause_turn: "pause",
  refusal: "content_blocked",
  content_filter: "content_blocked",
  SAFETY: "content_blocked",
  RECITATION: "content_blocked",
  BLOCKLIST: "content_blocked",
  PROHIBITED_CONTENT: "content_blocked",
  SPII: "content_blocked",
  IMAGE_SAFETY: "content_blocked",
  IMAGE_RECITATION: "content_blocked",
  IMAGE_PROHIBITED_CONTENT: "content_blocked",
  MALFORMED_FUNCTION_CALL: "malformed_call",
};

/**
 * Finish reasons with which OpenAI-compatible servers report that the answer failed, without another error:
 * OpenRouter and Mistral, DeepSeek, Z.ai. Their packages do not distinguish these from other unknown reasons.
 */
const failedReasons: ReadonlySet<string> = new Set([
  "error",
  "insufficient_system_resource",
  "network_error",
]);

/**
 * Converts the reason why the model stopped. Returns `null` if the answer failed or was interrupted. A V3 provider that
 * lost its connection in a stream reports `other` without a raw reason, which counts as failed.
 */
export function stopReasonOf({ unified, raw }: FinishReason, streamed: boolean): StopReason | null {
  if (raw !== undefined && failedReasons.has(raw.toLowerCase())) return null;
  const known = raw !== undefined && Object.hasOwn(rawReasons, raw) ? rawReasons[raw] : undefined;
  if (known !== undefined) return known;
  switch (unified) {
    case "stop":
    case "length":
      return unified;
    case "tool-calls":
      return "tool_calls";
    case "content-filter":
      return "content_blocked";
    case "error":
    case "interrupted":
      return null;
    case "other":
      return streamed && raw === undefined ? null : "other";
  }
}

/** Token counts of the provider. `null` means that the provider did not report the total. */
export interface CountedUsage extends Omit<ReportedUsage, "inputTokens" | "outputTokens"> {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/** Converts the token usage of a response. */
export function usageOf({ inputTokens, outputTokens, raw }: AiSdkUsage, provider: string): CountedUsage {
  const cacheReadTokens = count(inputTokens.cacheRead) ?? 0;
  const cacheWriteTokens = count(inputTokens.cacheWrite) ?? 0;
  const fresh = count(inputTokens.noCache);
  const input =
    count(inputTokens.total) ?? (fresh === null ? null : fresh + cacheReadTokens + cacheWriteTokens);
  const reasoningTokens = count(outputTokens.reasoning) ?? 0;
  const text = count(outputTokens.text);
  const output = count(outputTokens.total) ?? (text === null ? null : text + reasoningTokens);
  // OpenRouter bills per call and reports the cost.
  const cost = provider === "openrouter" ? raw?.["cost"] : undefined;
  return {
    inputTokens: input,
    outputTokens: output,
    cacheReadTokens: Math.min(cacheReadTokens, input ?? 0),
    cacheWriteTokens: Math.min(cacheWriteTokens, Math.max(0, (input ?? 0) - cacheReadTokens)),
    reasoningTokens: Math.min(reasoningTokens, output ?? 0),
    ...(typeof cost === "number" && cost >= 0 ? { costUsd: cost } : {}),
  };
}

function count(tokens: number | undefined): number | null {
  return tokens !== undefined && Number.isFinite(tokens) ? Math.max(0, Math.round(tokens)) : null;
}

/**
 * Parses the arguments of a tool call. Invalid JSON stays a text, and the tool's schema then refuses it with a
 * message to the model. An empty text means no arguments.
 */
function readInput(text: string): JsonValue {
  if (text.trim() === "") return {};
  // A level takes one byte or more, so that a shorter text has neither too many levels nor too many values.
  if (text.length > deepestJson)
    new JsonCounter("the arguments of a tool call", deepestJson).add(Buffer.from(text));
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}

type FileData = Extract<Content, { type: "file" }>["data"];

function mediaSource(data: FileData): FilePart["source"] {
  if (typeof data === "string") return { kind: "base64", data };
  if (data instanceof Uint8Array) return { kind: "base64", data: Buffer.from(data).toString("base64") };
  if (data.type === "url") return { kind: "url", url: data.url.toString() };
  return mediaSource(data.data);
}

/** Returns provider metadata as JSON, in the shape of a part's field. */
export function metadataOf(metadata: object | undefined): { providerMetadata?: ProviderMetadata } {
  return metadata === undefined ? {} : { providerMetadata: plain(metadata) as ProviderMetadata };
}

/** J10: converts a value to plain JSON, so that for example dates become texts. */
function plain(value: unknown): JsonValue {
  return JSON.parse(JSON.stringify(value ?? null)) as JsonValue;
}
