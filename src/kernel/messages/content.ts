import type { JsonObject, JsonValue } from "../base/json-value.ts";

/**
 * Data of a provider, by provider name, such as signatures, cache markers and response ids. It is sent back unchanged.
 */
export type ProviderMetadata = { readonly [provider: string]: JsonObject };

interface PartBase {
  /** Data that must be sent back to the provider unchanged. */
  readonly providerMetadata?: ProviderMetadata;
}

/** Binary content: inline as base64, or a URL (http, https or data). */
export type MediaSource =
  | { readonly kind: "base64"; readonly data: string }
  | { readonly kind: "url"; readonly url: string };

/** A text. */
export interface TextPart extends PartBase {
  readonly type: "text";
  /** The text. */
  readonly text: string;
}

/** An image. */
export interface ImagePart extends PartBase {
  readonly type: "image";
  /** Media type, for example `image/png`. */
  readonly mediaType: string;
  /** The image data. */
  readonly source: MediaSource;
}

/** A file. */
export interface FilePart extends PartBase {
  readonly type: "file";
  /** Media type, for example `application/pdf`. */
  readonly mediaType: string;
  /** The file data. */
  readonly source: MediaSource;
  /** Name of the file. */
  readonly filename?: string;
}

/** Reasoning of the model. Its provider metadata contains the signature that must be sent back with it. */
export interface ReasoningPart extends PartBase {
  readonly type: "reasoning";
  /** Text of the reasoning. */
  readonly text: string;
}

/** A tool call of the model. */
export interface ToolCallPart extends PartBase {
  readonly type: "tool_call";
  /**
   * Id that the provider gave the call. J2: a step address never contains it, because some servers use the same id
   * for several calls.
   */
  readonly callId: string;
  /** Name of the called tool. */
  readonly toolName: string;
  /** Arguments of the call. */
  readonly input: JsonValue;
}

/**
 * Content that only its provider understands, such as citations and calls of tools that the provider runs itself.
 * It is sent back unchanged, and only to that provider.
 */
export interface OpaquePart extends PartBase {
  readonly type: "opaque";
  /** Name of the provider. */
  readonly provider: string;
  /** The content. */
  readonly value: JsonObject;
}

/** The result of a tool call. */
export interface ToolResultPart extends PartBase {
  readonly type: "tool_result";
  /** Id of the answered call. */
  readonly callId: string;
  /** Name of the called tool. */
  readonly toolName: string;
  /** What the model sees. */
  readonly output: ToolOutput;
  /** Whether the call failed. */
  readonly isError: boolean;
}

/** The output of a tool, as the model sees it: text, JSON or content parts. */
export type ToolOutput =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "json"; readonly value: JsonValue }
  | { readonly type: "content"; readonly parts: readonly (TextPart | ImagePart | FilePart)[] };

/** A part of a user message. */
export type UserPart = TextPart | ImagePart | FilePart;
/** A part of an assistant message. */
export type AssistantPart = TextPart | FilePart | ReasoningPart | ToolCallPart | OpaquePart;
/** A part of any message except a system message. */
export type ContentPart = UserPart | AssistantPart | ToolResultPart;

/** Returns the concatenated text of all text parts. */
export function textOf(parts: readonly ContentPart[]): string {
  let text = "";
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index] as ContentPart;
    if (part.type === "text") text += part.text;
  }
  return text;
}

/** Whether a value is a text, image or file part. */
export function isUserPart(part: unknown): part is UserPart {
  if (!isRecord(part)) return false;
  const { type, text, mediaType, source } = part;
  if (type === "text") return typeof text === "string";
  return (type === "image" || type === "file") && typeof mediaType === "string" && isSource(source);
}

function isSource(source: unknown): boolean {
  if (!isRecord(source)) return false;
  const { kind, data, url } = source;
  return (kind === "base64" && typeof data === "string") || (kind === "url" && typeof url === "string");
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
