import type { JsonObject, JsonValue } from "../base/json-value.ts";

/** What a provider wants back untouched, under its own name: signatures, cache markers, response ids. */
export type ProviderMetadata = { readonly [provider: string]: JsonObject };

interface PartBase {
  readonly providerMetadata?: ProviderMetadata;
}

/** Binary content: base64 kept inline, or an address (http or data). */
export type MediaSource =
  | { readonly kind: "base64"; readonly data: string }
  | { readonly kind: "url"; readonly url: string };

export interface TextPart extends PartBase {
  readonly type: "text";
  readonly text: string;
}

export interface ImagePart extends PartBase {
  readonly type: "image";
  readonly mediaType: string;
  readonly source: MediaSource;
}

export interface FilePart extends PartBase {
  readonly type: "file";
  readonly mediaType: string;
  readonly source: MediaSource;
  readonly filename?: string;
}

/** The model's thinking. Its provider metadata carries the signature that must go back with it. */
export interface ReasoningPart extends PartBase {
  readonly type: "reasoning";
  readonly text: string;
}

export interface ToolCallPart extends PartBase {
  readonly type: "tool_call";
  /** The provider's; servers repeat them, so it is data and never an address (J2). */
  readonly callId: string;
  readonly toolName: string;
  readonly input: JsonValue;
}

/**
 * What only its provider understands: citations, calls of tools that the provider runs itself, blocks of its own. It goes back to that
 * provider untouched, and to no other.
 */
export interface OpaquePart extends PartBase {
  readonly type: "opaque";
  readonly provider: string;
  readonly value: JsonObject;
}

export interface ToolResultPart extends PartBase {
  readonly type: "tool_result";
  readonly callId: string;
  readonly toolName: string;
  readonly output: ToolOutput;
  readonly isError: boolean;
}

/** What a tool shows the model. */
export type ToolOutput =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "json"; readonly value: JsonValue }
  | { readonly type: "content"; readonly parts: readonly (TextPart | ImagePart | FilePart)[] };

export type UserPart = TextPart | ImagePart | FilePart;
export type AssistantPart = TextPart | FilePart | ReasoningPart | ToolCallPart | OpaquePart;
export type ContentPart = UserPart | AssistantPart | ToolResultPart;

/** The text of parts, joined; everything else left out. */
export function textOf(parts: readonly ContentPart[]): string {
  let text = "";
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index] as ContentPart;
    if (part.type === "text") text += part.text;
  }
  return text;
}
