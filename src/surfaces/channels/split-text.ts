/** Separators at which a text may be cut, the best first. Each separator stays at the end of its piece. */
const separators = ["\n\n", "\n", ". ", " "] as const;

const segmenter = new Intl.Segmenter();

/**
 * Cuts a text into pieces of at most `limit` UTF-16 code units: after a paragraph, a line, a sentence or a word, if one of
 * them ends in the second half of a piece. Otherwise it cuts between two characters as a person sees them, so that no
 * emoji or accent is torn. Pieces without visible characters are left out.
 */
export function splitText(text: string, limit: number): readonly string[] {
  const pieces: string[] = [];
  let rest = text.trim();
  while (rest.length > limit) {
    const at = cutAt(rest, limit);
    pieces.push(rest.slice(0, at).trimEnd());
    rest = rest.slice(at).trimStart();
  }
  pieces.push(rest);
  return pieces.filter((piece) => piece !== "");
}

function cutAt(text: string, limit: number): number {
  const head = text.slice(0, limit);
  for (const separator of separators) {
    const at = head.lastIndexOf(separator);
    if (at + separator.length > limit / 2) return at + separator.length;
  }
  return characterEnd(text, limit);
}

/**
 * Returns the last end of a visible character within the limit. If a single character is longer than the limit, it
 * is cut at a code point.
 */
function characterEnd(text: string, limit: number): number {
  // Characters of more than this length are cut. A text of combining marks could otherwise be one character.
  const window = Math.max(0, limit - 64);
  let end = 0;
  for (const { index, segment } of segmenter.segment(text.slice(window, limit + 64))) {
    const stop = window + index + segment.length;
    if (stop > limit) break;
    end = stop;
  }
  if (end > 0) return end;
  const isTorn = /[\uD800-\uDBFF]/u.test(text.charAt(limit - 1));
  return isTorn && limit > 1 ? limit - 1 : limit;
}
