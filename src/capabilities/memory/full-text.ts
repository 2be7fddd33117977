/**
 * A person's words as an FTS5 query, within one scope: any of them may be there. Each is quoted, so that nothing in them is taken for
 * the query language. `null`: there is no word in it.
 */
export function matchAny(scope: string, text: string): string | null {
  const words = text.normalize("NFC").match(/[\p{L}\p{N}\p{M}_]+/gu);
  if (words === null) return null;
  const wanted = [...new Set(words)].slice(0, mostWords).map((word) => `"${word}"`);
  return `scope : "${scope}" AND text : (${wanted.join(" OR ")})`;
}

/** A whole document as a query finds no more than its first words would, and takes long. */
const mostWords = 64;

/** The scope as a word of the index, so that a search reads what is in it and not what is in all. */
export function scopeWord(scopeId: number): string {
  return `scope${scopeId}`;
}
