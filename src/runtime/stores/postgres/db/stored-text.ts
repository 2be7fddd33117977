const zero = "\u0000";
const mark = "\u0001";

/**
 * Returns the stored form of a text. PostgreSQL stores no character U+0000: it becomes U+0001 and "0", and U+0001 becomes
 * U+0001 and "1".
 */
export function storedText(text: string): string {
  if (!text.includes(zero) && !text.includes(mark)) return text;
  return text.replaceAll(mark, `${mark}1`).replaceAll(zero, `${mark}0`);
}

/** Returns the text whose stored form this is. */
export function textOf(stored: string): string {
  if (!stored.includes(mark)) return stored;
  return stored.replaceAll(`${mark}0`, zero).replaceAll(`${mark}1`, mark);
}
