/** Returns the media type of an image that models can view, detected from its first bytes. */
export function imageType(start: Uint8Array): string | undefined {
  const text = Buffer.from(start.subarray(0, 12)).toString("latin1");
  if (text.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (text.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (text.startsWith("GIF87a") || text.startsWith("GIF89a")) return "image/gif";
  return text.startsWith("RIFF") && text.slice(8, 12) === "WEBP" ? "image/webp" : undefined;
}

/** Whether the first bytes contain a zero byte. UTF-16 text counts as binary, too, because it is not read. */
export function looksBinary(start: Uint8Array): boolean {
  return start.includes(0);
}
