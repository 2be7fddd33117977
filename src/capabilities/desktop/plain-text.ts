/** Matches control characters, characters that change the writing direction, and invisible tag characters. */
const steering = /[^\P{Cc}\n\t]|[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069\u{E0000}-\u{E007F}]/gu;

/** Returns a program's text without control characters, at most `most` characters long. The text is untrusted. */
export function plainText(text: string, most: number): string {
  const cut = text.length > most ? `${text.slice(0, most).toWellFormed()}…` : text;
  return cut.replaceAll("\r\n", "\n").replaceAll(steering, " ");
}

/** Returns a program's text as one line, so that it cannot imitate further lines of the description. */
export function plainLine(text: string, most: number): string {
  return plainText(text, most).replaceAll(/\s+/gu, " ").trim();
}
