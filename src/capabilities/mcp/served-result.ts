import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/server";
import type {
  FilePart,
  JsonObject,
  JsonValue,
  MediaSource,
  ToolOutput,
  ToolResult,
} from "../../kernel/index.ts";

/** Converts a tool result to the form of the MCP protocol. */
export function servedResult({ output, isError }: ToolResult): CallToolResult {
  return { ...servedOutput(output), ...(isError && { isError }) };
}

function servedOutput(output: ToolOutput): Pick<CallToolResult, "content" | "structuredContent"> {
  switch (output.type) {
    case "text":
      return { content: [textBlock(output.text)] };
    case "json": {
      const { value } = output;
      // Revisions up to 2025-11-25 allow only objects as structured content; the text has the value in any case.
      return {
        content: [textBlock(JSON.stringify(value))],
        ...(isObject(value) && { structuredContent: value }),
      };
    }
    case "content":
      return { content: output.parts.map(servedPart) };
  }
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function servedPart(part: (ToolOutput & { type: "content" })["parts"][number]): ContentBlock {
  switch (part.type) {
    case "text":
      return textBlock(part.text);
    case "image": {
      const data = inlined(part.source);
      return data === undefined
        ? linkBlock(part.source, part.mediaType)
        : { type: "image", mimeType: part.mediaType, data };
    }
    case "file":
      return servedFile(part);
  }
}

function servedFile({ mediaType, source, filename = "file" }: FilePart): ContentBlock {
  const data = inlined(source);
  if (data === undefined) return linkBlock(source, mediaType, filename);
  if (mediaType.startsWith("audio/")) return { type: "audio", mimeType: mediaType, data };
  const uri = URL.canParse(filename) ? filename : `file:///${encodeURIComponent(filename)}`;
  if (!isText(mediaType)) return { type: "resource", resource: { uri, mimeType: mediaType, blob: data } };
  const text = Buffer.from(data, "base64").toString("utf8");
  return { type: "resource", resource: { uri, mimeType: mediaType, text } };
}

function isText(mediaType: string): boolean {
  return mediaType.startsWith("text/") || /[/+]json\b/.test(mediaType);
}

/** Returns base64 data, or `undefined` if the source is a URL to fetch. */
function inlined(source: MediaSource): string | undefined {
  if (source.kind === "base64") return source.data;
  const [, data] = /^data:[^,]*;base64,(.*)$/s.exec(source.url) ?? [];
  return data;
}

function linkBlock(source: MediaSource, mimeType: string, name = "file"): ContentBlock {
  return { type: "resource_link", uri: source.kind === "url" ? source.url : "", name, mimeType };
}

function textBlock(text: string): ContentBlock {
  return { type: "text", text };
}
