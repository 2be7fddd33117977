/**
 * Matches an emoji that consists of several characters. Its joiners and its variation selector belong to one
 * picture.
 */
const emoji = String.raw`\p{Extended_Pictographic}[\uFE0F\p{Emoji_Modifier}]?(?:\u200D\p{Extended_Pictographic}[\uFE0F\p{Emoji_Modifier}]?)*|[0-9#*]\uFE0F\u20E3`;

/**
 * Matches characters that a person cannot see as such: controls, such as those of a terminal; characters that
 * change the direction of a text, join it or fill it; tags and variation selectors, which can spell a second text;
 * halves of surrogate pairs; line separators; and blanks that are very narrow or unusual.
 */
const hidden = String.raw`([\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u1680\u2000-\u200A\u205F\u2800])`;

const inText = new RegExp(String.raw`${emoji}|\r\n|[\n\t]|${hidden}`, "gu");
const inLine = new RegExp(`${emoji}|${hidden}`, "gu");

/**
 * Returns a text in the form in which a person who decides on it must see it. Each invisible character is shown as
 * its escape, so that `rm -rf \u202Etxt.ssentoh/` is not shown reversed. Line breaks, tabs and emoji stay.
 *
 * The escapes are those of JSON. In a JSON text such characters occur only in strings, so that the returned text
 * still parses to the same value.
 */
export function visibleText(text: string): string {
  return text.replaceAll(inText, shown);
}

/** Returns a text as `visibleText` does, but in one line: line breaks and tabs are escaped too. */
export function visibleLine(text: string): string {
  return text.replaceAll(inLine, shown);
}

const short: Readonly<Record<string, string>> = {
  "\n": String.raw`\n`,
  "\r": String.raw`\r`,
  "\t": String.raw`\t`,
};

function shown(match: string, character: string | undefined): string {
  if (character === undefined) return match;
  return short[character] ?? character.replaceAll(/[^]/g, unitEscape);
}

function unitEscape(unit: string): string {
  return String.raw`\u` + unit.charCodeAt(0).toString(16).padStart(4, "0");
}
