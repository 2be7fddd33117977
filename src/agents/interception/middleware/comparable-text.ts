/** A text in the characters that patterns use, with the position of each character in the original text. */
export interface ComparableText {
  readonly text: string;
  /** Returns the position in the original text of the character at an index, or of the end of the text. */
  readonly placeOf: (index: number) => number;
}

const outsideAscii = /[^\p{ASCII}]/u;
const unseen = /^[\p{Default_Ignorable_Code_Point}\p{Cf}]$/u;
const digit = /^\p{Nd}$/u;
const dash = /^[\p{Pd}\u2212\u00B7\u2022\u2027\u2043\u30FB]$/u;
const space = /^\p{Zs}$/u;
const dot = /^[\u3002\uFF61\u2024\u06D4]$/u;
const mark = /^\p{M}$/u;
const asciiDigit = /^\d$/u;

/**
 * Converts a text to the characters as which a reader sees it: digits of all scripts to ASCII digits, similar forms
 * such as `＠` and `①` to ASCII, dashes and dots to `-` and `.`, and spaces to a space. Invisible characters, and
 * marks on digits such as a strike-through, are removed. Other characters do not change.
 */
export function comparableText(original: string): ComparableText {
  if (!outsideAscii.test(original)) return { text: original, placeOf: (index) => index };
  const characters: string[] = [];
  const places: number[] = [];
  let place = 0;
  for (const character of original) {
    for (const each of plainCharacters(character, characters.at(-1) ?? "")) {
      characters.push(each);
      places.push(place);
    }
    place += character.length;
  }
  return { text: characters.join(""), placeOf: (index) => places[index] ?? original.length };
}

function plainCharacters(character: string, before: string): Iterable<string> {
  if (!outsideAscii.test(character)) return character;
  if (unseen.test(character)) return "";
  if (digit.test(character)) return digitOf(character);
  if (dash.test(character)) return "-";
  if (space.test(character)) return " ";
  if (dot.test(character)) return ".";
  if (mark.test(character)) return asciiDigit.test(before) ? "" : character.split("");
  const compatible = character.normalize("NFKC");
  // Units of UTF-16, because an index into the text counts them.
  return outsideAscii.test(compatible) ? character.split("") : compatible;
}

/** Returns the value of a decimal digit. Unicode encodes the digits of each script in order, without a gap. */
function digitOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  let zero = code;
  while (digit.test(String.fromCodePoint(zero - 1))) zero--;
  return String((code - zero) % 10);
}
