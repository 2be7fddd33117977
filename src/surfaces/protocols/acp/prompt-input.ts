import type { ContentBlock } from "@agentclientprotocol/sdk";
import { Fault, type UserPart } from "../../../kernel/index.ts";

/** The input of a run: a text, or content parts. */
export type PromptInput = string | readonly UserPart[];

/**
 * Converts the content of a prompt. Texts and links form one text, because editors cut a message at each mention.
 * An embedded resource is appended as a separate section, so that the model can tell it from the user's words.
 */
export function promptInput(prompt: readonly ContentBlock[]): PromptInput {
  let text = "";
  const sections: string[] = [];
  const media: UserPart[] = [];
  for (const block of prompt) {
    switch (block.type) {
      case "text":
        text += block.text;
        break;
      case "resource_link":
        text += `[${block.title ?? block.name}](${block.uri})`;
        break;
      case "image":
        media.push({
          type: "image",
          mediaType: block.mimeType,
          source: { kind: "base64", data: block.data },
        });
        break;
      case "resource": {
        const { resource } = block;
        if ("text" in resource)
          sections.push(`<resource uri=${JSON.stringify(resource.uri)}>\n${resource.text}\n</resource>`);
        else media.push(filePart(resource));
        break;
      }
      case "audio":
        throw new Fault("unsupported", "audio in a prompt is not supported; send text, images or files");
    }
  }
  const whole = [text, ...sections].filter((each) => each.trim() !== "").join("\n\n");
  if (whole === "" && media.length === 0)
    throw new Fault("invalid_argument", "the prompt is empty; send a text, an image or a resource");
  if (media.length === 0) return whole;
  return whole === "" ? media : [{ type: "text", text: whole }, ...media];
}

function filePart({
  uri,
  blob,
  mimeType,
}: {
  readonly uri: string;
  readonly blob: string;
  readonly mimeType?: string | null;
}): UserPart {
  const mediaType = mimeType ?? "application/octet-stream";
  const source = { kind: "base64", data: blob } as const;
  if (mediaType.startsWith("image/")) return { type: "image", mediaType, source };
  return { type: "file", mediaType, source, filename: uri.split("/").at(-1) ?? uri };
}
