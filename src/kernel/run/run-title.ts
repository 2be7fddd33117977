/** Maximum length of the title of a run, in code points. */
export const longestTitle = 80;

/**
 * Returns the first `longestTitle` code points of a text as one line: each sequence of white space and control
 * characters becomes one space. Returns `null` if nothing else is in the text.
 */
export function runTitle(text: string): string | null {
  let title = "";
  let length = 0;
  for (const character of text) {
    const isBlank = character <= " " || (character > "~" && /[\s\p{Cc}]/u.test(character));
    if (isBlank && (title === "" || title.endsWith(" "))) continue;
    title += isBlank ? " " : character;
    length++;
    if (length === longestTitle) break;
  }
  const line = title.trimEnd().toWellFormed();
  return line === "" ? null : line;
}
