/**
 * Converts a text to an FTS5 query that finds entries of one scope with any of its words. Each word is quoted, so that
 * the text cannot contain query syntax. Returns `null` if the text has no words.
 */
export function matchAny(scope: string, text: string): string | null {
  const words = text.normalize("NFC").match(/[\p{L}\p{N}\p{M}_]+/gu);
  if (words === null) return null;
  const wanted = [...new Set(words)].slice(0, maxWords).map((word) => `"${word}"`);
  return `scope : "${scope}" AND text : (${wanted.join(" OR ")})`;
}

/**
 * Maximum number of words of a query. Further words of a long text would make the search slow and hardly change its
 * result.
 */
const maxWords = 64;

/** Returns a scope as a word of the full-text index, so that a search reads only the entries of that scope. */
export function scopeWord(scopeId: number): string {
  return `scope${scopeId}`;
}
