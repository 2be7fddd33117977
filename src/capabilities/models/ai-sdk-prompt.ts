import type {
  LanguageModelV3FilePart,
  LanguageModelV3Prompt,
  LanguageModelV3ToolResultPart,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";
import {
  Fault,
  textOf,
  type AssistantPart,
  type ChatMessage,
  type FilePart,
  type ImagePart,
  type JsonValue,
  type OpaquePart,
  type ProviderMetadata,
  type ToolResultPart,
  type UserPart,
} from "../../kernel/index.ts";
import { inlineMedia, type InlineMedia, type SupportedUrls } from "./inline-media.ts";

/** The model for which a prompt is written. */
export interface PromptTarget {
  readonly version: "v3" | "v4";
  /** First part of the provider's name. Opaque parts of other providers are left out of the prompt. */
  readonly provider: string;
  readonly supportedUrls: SupportedUrls;
  /** Base64 data of downloaded images, by URL. */
  readonly downloaded: ReadonlyMap<string, string>;
}

type Prompt = LanguageModelV3Prompt | LanguageModelV4Prompt;
type Assistant = Extract<LanguageModelV4Message, { role: "assistant" }>["content"][number];
type FileContent = LanguageModelV4FilePart | LanguageModelV3FilePart;
type ToolContent = LanguageModelV4ToolResultPart | LanguageModelV3ToolResultPart;

/**
 * Converts a conversation to the AI SDK's form. Throws a fault if the model cannot receive a part, before anything is
 * sent.
 */
export function promptFor(messages: readonly ChatMessage[], target: PromptTarget): Prompt {
  return messages.map((message) => ({
    ...messageFor(message, target),
    ...options(message.providerMetadata),
  })) as Prompt;
}

function messageFor(message: ChatMessage, target: PromptTarget): object {
  switch (message.role) {
    case "system":
      return { role: "system", content: message.content };
    case "user":
      return { role: "user", content: message.content.map((part) => userPart(part, target)) };
    case "assistant":
      return { role: "assistant", content: message.content.flatMap((part) => assistantPart(part, target)) };
    case "tool":
      return { role: "tool", content: message.content.map((part) => toolResult(part, target)) };
  }
}

function userPart(part: UserPart, target: PromptTarget): unknown {
  return part.type === "text" ? textPart(part) : filePart(part, target);
}

function assistantPart(part: AssistantPart, target: PromptTarget): readonly unknown[] {
  switch (part.type) {
    case "text":
      // Some providers refuse an empty text.
      return part.text === "" && part.providerMetadata === undefined ? [] : [textPart(part)];
    case "file":
      return [filePart(part, target)];
    case "reasoning":
      return [{ type: "reasoning", text: part.text, ...options(part.providerMetadata) }];
    case "tool_call": {
      const { callId: toolCallId, toolName, input, providerMetadata } = part;
      return [
        { type: "tool-call", toolCallId, toolName, input: callInput(input), ...options(providerMetadata) },
      ];
    }
    case "opaque":
      return opaquePart(part, target);
  }
}

/**
 * Returns the arguments of a call as an object, because providers accept nothing else. Malformed arguments are wrapped,
 * so that the model sees what it wrote.
 */
function callInput(input: JsonValue): JsonValue {
  return typeof input === "object" && input !== null && !Array.isArray(input)
    ? input
    : { malformed_arguments: input };
}

const returnable: ReadonlySet<unknown> = new Set<Assistant["type"]>([
  "custom",
  "reasoning-file",
  "tool-call",
  "tool-result",
]);

function opaquePart(
  { provider, value, providerMetadata }: OpaquePart,
  target: PromptTarget,
): readonly unknown[] {
  if (provider !== target.provider || !returnable.has(value["type"])) return [];
  return [{ ...value, ...options(providerMetadata) }];
}

function textPart({ text, providerMetadata }: { text: string; providerMetadata?: ProviderMetadata }): object {
  return { type: "text", text, ...options(providerMetadata) };
}

function filePart(part: ImagePart | FilePart, target: PromptTarget): FileContent {
  const { mediaType, providerMetadata } = part;
  const media = inlineMedia(part, target);
  const filename = part.type === "file" && part.filename !== undefined ? { filename: part.filename } : {};
  const data =
    target.version === "v4" ? taggedMedia(media) : "data" in media ? media.data : new URL(media.url);
  return { type: "file", mediaType, data, ...filename, ...options(providerMetadata) } as FileContent;
}

function taggedMedia(media: InlineMedia): LanguageModelV4FilePart["data"] {
  return "data" in media ? { type: "data", data: media.data } : { type: "url", url: new URL(media.url) };
}

function toolResult(part: ToolResultPart, target: PromptTarget): ToolContent {
  const { callId: toolCallId, toolName, providerMetadata } = part;
  const output = toolOutput(part, target);
  return { type: "tool-result", toolCallId, toolName, output, ...options(providerMetadata) } as ToolContent;
}

function toolOutput({ output, isError }: ToolResultPart, target: PromptTarget): unknown {
  switch (output.type) {
    case "text":
      return { type: isError ? "error-text" : "text", value: output.text };
    case "json":
      return { type: isError ? "error-json" : "json", value: output.value };
    case "content":
      // The AI SDK has no form for an error with images; its text must then say that it is an error.
      if (isError && output.parts.every(({ type }) => type === "text"))
        return { type: "error-text", value: textOf(output.parts) };
      return { type: "content", value: output.parts.map((part) => toolOutputPart(part, target)) };
  }
}

function toolOutputPart(part: UserPart, target: PromptTarget): unknown {
  if (part.type === "text") return textPart(part);
  if (target.version === "v4") return filePart(part, target);
  const { mediaType, type, providerMetadata } = part;
  const media = inlineMedia(part, target);
  const body =
    "data" in media
      ? { type: `${type}-data`, data: media.data, mediaType }
      : { type: `${type}-url`, url: media.url };
  const filename = type === "file" && part.filename !== undefined ? { filename: part.filename } : {};
  return { ...body, ...filename, ...options(providerMetadata) };
}

function options(providerMetadata: ProviderMetadata | undefined): { providerOptions?: ProviderMetadata } {
  return providerMetadata === undefined ? {} : { providerOptions: providerMetadata };
}

/** Returns a system message that asks for JSON of a schema, for a provider that has no parameter for it. */
export function schemaNote(schema: JsonValue): ChatMessage {
  if (schema === null)
    throw new Fault("invalid_argument", "invalid schema of the response format: null; use a JSON Schema");
  return {
    role: "system",
    content: `Answer with one JSON value and nothing else: no text before or after it, no code fence. It must match this JSON Schema:\n${JSON.stringify(schema)}`,
  };
}
