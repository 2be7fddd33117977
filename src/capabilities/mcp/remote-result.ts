import type { CallToolResult, ContentBlock, ReadResourceResult } from "@modelcontextprotocol/client";
import type {
  FilePart,
  ImagePart,
  JsonObject,
  JsonValue,
  TextPart,
  ToolResult,
  UserPart,
} from "../../kernel/index.ts";

type Part = TextPart | ImagePart | FilePart;
type Contents = ReadResourceResult["contents"][number];

/** Converts a server's result to a tool result. */
export function remoteResult({ content, structuredContent, isError = false }: CallToolResult): ToolResult {
  const parts = content.flatMap(remoteParts);
  const onlyText = parts.every((part) => part.type === "text");
  // Servers repeat structured content as text for clients that do not support it.
  if (structuredContent !== undefined && onlyText && !isError)
    return { output: { type: "json", value: structuredContent as JsonValue }, isError };
  const metadata = structuredContent !== undefined && {
    metadata: { structuredContent: structuredContent as JsonValue },
  };
  if (onlyText) return { output: { type: "text", text: lines(parts) }, isError, ...metadata };
  return { output: { type: "content", parts }, isError, ...metadata };
}

/**
 * Converts one block of a server's content to message parts. A block of an unknown kind becomes text that describes it.
 */
export function remoteParts(block: ContentBlock): UserPart[] {
  switch (block.type) {
    case "text":
      return [text(block.text)];
    case "image":
      return [{ type: "image", mediaType: block.mimeType, source: { kind: "base64", data: block.data } }];
    case "audio":
      return [{ type: "file", mediaType: block.mimeType, source: { kind: "base64", data: block.data } }];
    case "resource":
      return [resourcePart(block.resource)];
    case "resource_link":
      return [
        text(
          `[resource ${block.uri}: ${[block.title ?? block.name, block.description].filter(Boolean).join(", ")}]`,
        ),
      ];
    default:
      return [text(JSON.stringify(block))];
  }
}

/**
 * Converts the content of a resource to a message part: text as text, everything else as an image or a file named by
 * its URI.
 */
export function resourcePart(contents: Contents): Part {
  if ("text" in contents) return text(contents.text);
  const { uri, mimeType = "application/octet-stream", blob } = contents;
  const source = { kind: "base64", data: blob } as const;
  if (mimeType.startsWith("image/")) return { type: "image", mediaType: mimeType, source };
  return { type: "file", mediaType: mimeType, source, filename: uri };
}

/** Returns a tool result with the parts. */
export function partsResult(parts: readonly Part[], metadata?: JsonObject): ToolResult {
  const output = parts.every((part) => part.type === "text")
    ? ({ type: "text", text: lines(parts) } as const)
    : ({ type: "content", parts } as const);
  return { output, isError: false, ...(metadata && { metadata }) };
}

function text(value: string): TextPart {
  return { type: "text", text: value };
}

function lines(parts: readonly Part[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("\n");
}
