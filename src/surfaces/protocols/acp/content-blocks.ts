import type { ContentBlock } from "@agentclientprotocol/sdk";
import type { ToolOutput, UserPart } from "../../../kernel/index.ts";

export function textBlock(text: string): ContentBlock {
  return { type: "text", text };
}

/** Converts a part of a message to a content block for the editor. */
export function contentBlock(part: UserPart): ContentBlock {
  if (part.type === "text") return textBlock(part.text);
  const { mediaType, source } = part;
  const name = part.type === "file" ? (part.filename ?? "file") : "image";
  if (source.kind === "url") return { type: "resource_link", name, uri: source.url, mimeType: mediaType };
  if (mediaType.startsWith("image/")) return { type: "image", data: source.data, mimeType: mediaType };
  return { type: "resource", resource: { uri: `file:///${name}`, blob: source.data, mimeType: mediaType } };
}

/** Converts the output of a tool to content blocks for the editor. */
export function outputBlocks(output: ToolOutput): readonly ContentBlock[] {
  if (output.type === "text") return output.text === "" ? [] : [textBlock(output.text)];
  if (output.type === "json") return [textBlock(JSON.stringify(output.value, null, 2))];
  return output.parts.map(contentBlock);
}
