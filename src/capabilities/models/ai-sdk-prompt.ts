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

/** For whom a prompt is written. */
export interface Reader {
  readonly version: "v3" | "v4";
  /** Its bare name: what another provider left in the conversation is not for it. */
  readonly provider: string;
  readonly supportedUrls: SupportedUrls;
}

type Prompt = LanguageModelV3Prompt | LanguageModelV4Prompt;
type Assistant = Extract<LanguageModelV4Message, { role: "assistant" }>["content"][number];
type FileContent = LanguageModelV4FilePart | LanguageModelV3FilePart;
type ToolContent = LanguageModelV4ToolResultPart | LanguageModelV3ToolResultPart;

/** The conversation in the AI SDK's form. Throws a fault for what the model cannot be sent, before anything is. */
export function promptFor(messages: readonly ChatMessage[], reader: Reader): Prompt {
  return messages.map((message) => ({
    ...messageFor(message, reader),
    ...options(message.providerMetadata),
  })) as Prompt;
}

function messageFor(message: ChatMessage, reader: Reader): object {
  switch (message.role) {
    case "system":
      return { role: "system", content: message.content };
    case "user":
      return { role: "user", content: message.content.map((part) => userPart(part, reader)) };
    case "assistant":
      return { role: "assistant", content: message.content.flatMap((part) => assistantPart(part, reader)) };
    case "tool":
      return { role: "tool", content: message.content.map((part) => toolResult(part, reader)) };
  }
}

function userPart(part: UserPart, reader: Reader): unknown {
  return part.type === "text" ? textPart(part) : filePart(part, reader);
}

function assistantPart(part: AssistantPart, reader: Reader): readonly unknown[] {
  switch (part.type) {
    case "text":
      // Some providers refuse a text that is empty.
      return part.text === "" && part.providerMetadata === undefined ? [] : [textPart(part)];
    case "file":
      return [filePart(part, reader)];
    case "reasoning":
      return [{ type: "reasoning", text: part.text, ...options(part.providerMetadata) }];
    case "tool_call": {
      const { callId: toolCallId, toolName, input, providerMetadata } = part;
      return [
        { type: "tool-call", toolCallId, toolName, input: callInput(input), ...options(providerMetadata) },
      ];
    }
    case "opaque":
      return opaquePart(part, reader);
  }
}

/** Providers take arguments as an object only. A model that wrote something else is shown what it wrote. */
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

function opaquePart({ provider, value, providerMetadata }: OpaquePart, reader: Reader): readonly unknown[] {
  if (provider !== reader.provider || !returnable.has(value["type"])) return [];
  return [{ ...value, ...options(providerMetadata) }];
}

function textPart({ text, providerMetadata }: { text: string; providerMetadata?: ProviderMetadata }): object {
  return { type: "text", text, ...options(providerMetadata) };
}

function filePart(part: ImagePart | FilePart, reader: Reader): FileContent {
  const { mediaType, providerMetadata } = part;
  const media = inlineMedia(part, reader);
  const filename = part.type === "file" && part.filename !== undefined ? { filename: part.filename } : {};
  const data =
    reader.version === "v4" ? taggedMedia(media) : "data" in media ? media.data : new URL(media.url);
  return { type: "file", mediaType, data, ...filename, ...options(providerMetadata) } as FileContent;
}

function taggedMedia(media: InlineMedia): LanguageModelV4FilePart["data"] {
  return "data" in media ? { type: "data", data: media.data } : { type: "url", url: new URL(media.url) };
}

function toolResult(part: ToolResultPart, reader: Reader): ToolContent {
  const { callId: toolCallId, toolName, providerMetadata } = part;
  const output = toolOutput(part, reader);
  return { type: "tool-result", toolCallId, toolName, output, ...options(providerMetadata) } as ToolContent;
}

function toolOutput({ output, isError }: ToolResultPart, reader: Reader): unknown {
  switch (output.type) {
    case "text":
      return { type: isError ? "error-text" : "text", value: output.text };
    case "json":
      return { type: isError ? "error-json" : "json", value: output.value };
    case "content":
      // There is no form for an error that has pictures in it; then its words must say so.
      if (isError && output.parts.every(({ type }) => type === "text"))
        return { type: "error-text", value: textOf(output.parts) };
      return { type: "content", value: output.parts.map((part) => toolOutputPart(part, reader)) };
  }
}

function toolOutputPart(part: UserPart, reader: Reader): unknown {
  if (part.type === "text") return textPart(part);
  if (reader.version === "v4") return filePart(part, reader);
  const { mediaType, type, providerMetadata } = part;
  const media = inlineMedia(part, reader);
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

/** A schema for a model whose provider has no place for one. */
export function schemaNote(schema: JsonValue): ChatMessage {
  if (schema === null)
    throw new Fault("invalid_argument", "a response format's schema must be a JSON Schema");
  return {
    role: "system",
    content: `Answer with one JSON value and nothing else: no words before or after it, no code fence. It must fit this JSON Schema:\n${JSON.stringify(schema)}`,
  };
}
