import { Fault, type MediaSource, type UserPart } from "../../kernel/index.ts";

/** Returns the non-empty parts of a user message. Throws `invalid_argument` if all parts are empty. */
export function checkedContent(messageId: string, parts: readonly UserPart[]): readonly UserPart[] {
  const content = parts.filter((part) => part.type !== "text" || part.text !== "");
  if (content.some((part) => part.type !== "text" || part.text.trim() !== "")) return content;
  throw new Fault(
    "invalid_argument",
    `invalid message ${JSON.stringify(messageId)}: it has no text and no file`,
  );
}

/** Returns the source of an image or file that a client names by a URL. A `data:` URL is converted to its data. */
export function sourceOf(url: string): MediaSource {
  const inline = /^data:[^,]*;base64,/u.exec(url);
  if (inline !== null) return { kind: "base64", data: url.slice(inline[0].length) };
  if (/^(?:https?|data):/u.test(url)) return { kind: "url", url };
  throw new Fault("invalid_argument", "invalid address of a file: expected an http, https or data address");
}
