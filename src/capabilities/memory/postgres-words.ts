/** The words of a text that the index of PostgreSQL gets. */
export interface IndexedWords {
  /** Words without case and accents, separated by spaces. */
  readonly text: string;
  readonly count: number;
}

/** Maximum length of a word in a query. PostgreSQL refuses longer words. */
const longestWord = 500;
/** Maximum number of UTF-8 bytes of the indexed words of a text. More bytes would exceed the 1 MB of a `tsvector`. */
const mostBytes = 400_000;
/** Maximum number of words of a query. Further words would make the search slow and hardly change its result. */
const mostWanted = 64;

/** Y4: returns the words of a stored text. Words after the first 400,000 bytes are left out. */
export function indexedWords(text: string): IndexedWords {
  const words: string[] = [];
  let bytes = 0;
  for (const word of wordsIn(text)) {
    bytes += Buffer.byteLength(word) + 1;
    if (bytes > mostBytes) break;
    words.push(word);
  }
  return { text: words.join(" "), count: words.length };
}

/** Returns the words of a query, separated by spaces. Returns `null` if the text has no words. */
export function wantedWords(text: string): string | null {
  const words = [...new Set(wordsIn(text))].slice(0, mostWanted);
  return words.length === 0 ? null : words.join(" ");
}

/**
 * Returns the words of a text. They consist of letters and digits only, so that the parser of PostgreSQL reads them
 * as words.
 */
function wordsIn(text: string): readonly string[] {
  const plain = text.normalize("NFD").replaceAll(/\p{M}/gu, "").toLowerCase();
  return (plain.match(/[\p{L}\p{N}]+/gu) ?? []).filter(({ length }) => length <= longestWord);
}
