import type { ContentBlock } from "@agentclientprotocol/sdk";
import type { ToolOutput, UserPart } from "../../../kernel/index.ts";

export function textBlock(text: string): ContentBlock {
  return { type: "text", text };
}

/** A part of a message, as an editor shows it. */
export function contentBlock(part: UserPart): ContentBlock {
  if (part.type === "text") return textBlock(part.text);
  const { mediaType, source } = part;
  const name = part.type === "file" ? (part.filename ?? "file") : "image";
  if (source.kind === "url") return { type: "resource_link", name, uri: source.url, mimeType: mediaType };
  if (mediaType.startsWith("image/")) return { type: "image", data: source.data, mimeType: mediaType };
  return { type: "resource", resource: { uri: `file:///${name}`, blob: source.data, mimeType: mediaType } };
}

/** The output of a tool, as an editor shows it. */
export function outputBlocks(output: ToolOutput): readonly ContentBlock[] {
  if (output.type === "text") return output.text === "" ? [] : [textBlock(output.text)];
  if (output.type === "json") return [textBlock(JSON.stringify(output.value, null, 2))];
  return output.parts.map(contentBlock);
}
