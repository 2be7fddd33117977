/** The media type of an image that models can look at, by its first bytes. */
export function imageType(start: Uint8Array): string | undefined {
  const text = Buffer.from(start.subarray(0, 12)).toString("latin1");
  if (text.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (text.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (text.startsWith("GIF87a") || text.startsWith("GIF89a")) return "image/gif";
  return text.startsWith("RIFF") && text.slice(8, 12) === "WEBP" ? "image/webp" : undefined;
}

/** A text holds no zero byte, but for UTF-16, which is told by its first two and not read either. */
export function looksBinary(start: Uint8Array): boolean {
  return start.includes(0);
}
