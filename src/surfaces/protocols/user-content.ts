import { Fault, type MediaSource, type UserPart } from "../../kernel/index.ts";

/** Returns the parts of a user's message that are not empty. Throws `invalid_argument` if none has content. */
export function checkedContent(messageId: string, parts: readonly UserPart[]): readonly UserPart[] {
  const content = parts.filter((part) => part.type !== "text" || part.text !== "");
  if (content.some((part) => part.type !== "text" || part.text.trim() !== "")) return content;
  throw new Fault(
    "invalid_argument",
    `invalid message ${JSON.stringify(messageId)}: it has no text and no file`,
  );
}

/** The source of an image or a file that a client names by an address. A `data:` address becomes its data. */
export function sourceOf(url: string): MediaSource {
  const inline = /^data:[^,]*;base64,/u.exec(url);
  if (inline !== null) return { kind: "base64", data: url.slice(inline[0].length) };
  if (/^(?:https?|data):/u.test(url)) return { kind: "url", url };
  throw new Fault("invalid_argument", "invalid address of a file: expected an http, https or data address");
}
