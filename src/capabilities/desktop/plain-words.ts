/** Signs that steer a terminal, turn the direction of writing, or are read and not seen. */
const steering = /[^\P{Cc}\n\t]|[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069\u{E0000}-\u{E007F}]/gu;

/** What a program says, as far as it is only words, up to `most` characters. Whoever wrote the program wrote it: it may say anything. */
export function plainText(text: string, most: number): string {
  const cut = text.length > most ? `${text.slice(0, most).toWellFormed()}…` : text;
  return cut.replaceAll("\r\n", "\n").replaceAll(steering, " ");
}

/** The same as one line, so that it cannot pass for lines of ours. */
export function plainLine(text: string, most: number): string {
  return plainText(text, most).replaceAll(/\s+/gu, " ").trim();
}
