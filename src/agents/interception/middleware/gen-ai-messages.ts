import type {
  AssistantMessage,
  ChatMessage,
  ContentPart,
  JsonValue,
  MediaSource,
  StopReason,
} from "../../../kernel/index.ts";

/** Messages in the form of OpenTelemetry's GenAI conventions, as the text of an attribute. */
export function inputMessages(messages: readonly ChatMessage[]): string {
  return JSON.stringify(messages.map((message) => ({ role: message.role, parts: partsOf(message) })));
}

/** The answer of a model, as the text of an attribute. */
export function outputMessages(message: ChatMessage, reason: StopReason): string {
  return JSON.stringify([
    { role: message.role, parts: partsOf(message), finish_reason: finishReason(reason) },
  ]);
}

/** Input or output of an agent, which is no message, as the text of an attribute. */
export function spokenValue(role: "user" | "assistant", value: JsonValue): string {
  const content = typeof value === "string" ? value : JSON.stringify(value);
  const end = role === "assistant" ? { finish_reason: "stop" } : {};
  return JSON.stringify([{ role, parts: [{ type: "text", content }], ...end }]);
}

/** The system prompt, as the text of an attribute. */
export function systemParts(instructions: string): string {
  return JSON.stringify([{ type: "text", content: instructions }]);
}

/** The conventions' word for the reason why a model stopped. */
export function finishReason(reason: StopReason): string {
  return finishReasons[reason];
}

const finishReasons: Readonly<Record<StopReason, string>> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool_call",
  content_blocked: "content_filter",
  pause: "pause",
  malformed_call: "error",
  other: "other",
};

/** The conventions' word for a provider. A provider that they do not list keeps its name. */
export function providerName(provider: string): string {
  return providers[provider] ?? provider;
}

const providers: Readonly<Record<string, string>> = {
  azure: "azure.ai.openai",
  bedrock: "aws.bedrock",
  "amazon-bedrock": "aws.bedrock",
  google: "gcp.gemini",
  "google-vertex": "gcp.vertex_ai",
  mistral: "mistral_ai",
  moonshotai: "moonshot_ai",
  xai: "x_ai",
};

function partsOf(message: ChatMessage | AssistantMessage): readonly JsonValue[] {
  if (message.role === "system") return [{ type: "text", content: message.content }];
  return message.content.map(partOf);
}

function partOf(part: ContentPart): JsonValue {
  switch (part.type) {
    case "text":
    case "reasoning":
      return { type: part.type, content: part.text };
    case "tool_call":
      return { type: "tool_call", id: part.callId, name: part.toolName, arguments: part.input };
    case "tool_result":
      return { type: "tool_call_response", id: part.callId, response: part.output as JsonValue };
    case "opaque":
      // The conventions allow parts of other types.
      return { type: "opaque", provider: part.provider, value: part.value };
    default:
      return mediaPart(part.mediaType, part.source);
  }
}

/** Bytes are left out: a backend of traces is no place for them, and they would exceed its limits. */
function mediaPart(mediaType: string, source: MediaSource): JsonValue {
  const described = { mime_type: mediaType, modality: modalityOf(mediaType) };
  return source.kind === "url" && !source.url.startsWith("data:")
    ? { type: "uri", ...described, uri: source.url }
    : { type: "omitted_media", ...described };
}

function modalityOf(mediaType: string): string {
  const [kind = ""] = mediaType.split("/");
  return ["image", "video", "audio"].includes(kind) ? kind : "document";
}
