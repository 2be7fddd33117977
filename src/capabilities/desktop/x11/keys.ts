import { Fault } from "../../../kernel/index.ts";

/** X keysyms of the named keys, by lower-case name. */
const named: Readonly<Record<string, number>> = {
  backspace: 0xff08, tab: 0xff09, return: 0xff0d, enter: 0xff0d, pause: 0xff13, escape: 0xff1b, esc: 0xff1b,
  home: 0xff50, left: 0xff51, arrowleft: 0xff51, up: 0xff52, arrowup: 0xff52, right: 0xff53, arrowright: 0xff53,
  down: 0xff54, arrowdown: 0xff54, pageup: 0xff55, page_up: 0xff55, prior: 0xff55, pagedown: 0xff56, page_down: 0xff56,
  next: 0xff56, end: 0xff57, print: 0xff61, insert: 0xff63, menu: 0xff67, delete: 0xffff, del: 0xffff, space: 0x20,
  plus: 0x2b, minus: 0x2d, capslock: 0xffe5, caps_lock: 0xffe5,
  shift: 0xffe1, control: 0xffe3, ctrl: 0xffe3, alt: 0xffe9, option: 0xffe9, super: 0xffeb, meta: 0xffeb, win: 0xffeb,
  command: 0xffeb, cmd: 0xffeb, altgr: 0xfe03,
}; // prettier-ignore

const modifiers: ReadonlySet<number> = new Set([0xffe1, 0xffe3, 0xffe9, 0xffeb, 0xfe03]);

/** Keysym of the left Shift key. */
export const shiftKey = 0xffe1;

/** Returns the keysym of a character. */
export function symbolOf(character: string): number {
  const point = character.codePointAt(0) ?? 0;
  if (character === "\n" || character === "\r") return named["return"] ?? 0;
  if (character === "\t") return named["tab"] ?? 0;
  if (point < 0x20 || (point >= 0x7f && point < 0xa0))
    throw new Fault(
      "invalid_argument",
      `the character with code ${point} cannot be typed: leave it out, or press a key by its name`,
    );
  return point < 0x100 ? point : 0x0100_0000 + point;
}

/**
 * Parses a key with modifiers, such as `Control+Shift+T`, `Enter`, `F5` or `a`, to keysyms; the last one is the key
 * itself.
 */
export function parseChord(chord: string): readonly number[] {
  // A plus at the end is the key + itself.
  const names = chord.split(/\+(?=.)/u).map((name) => name.trim());
  const keys = names.map((name) => keyOf(name, names.length > 1));
  const wrong = keys.slice(0, -1).findIndex((key) => !modifiers.has(key));
  if (wrong >= 0)
    throw new Fault(
      "invalid_argument",
      `invalid key ${JSON.stringify(chord)}: ${names[wrong]} cannot be held; only Shift, Control, Alt, AltGr and Super can`,
    );
  return keys;
}

function keyOf(name: string, inChord: boolean): number {
  const [, digits] = /^f(\d{1,2})$/iu.exec(name) ?? [];
  if (digits !== undefined && Number(digits) >= 1 && Number(digits) <= 24) return 0xffbd + Number(digits);
  const known = named[name.toLowerCase()];
  if (known !== undefined) return known;
  // In Control+A the letter names a key, not a capital letter.
  if (Array.from(name).length === 1) return symbolOf(inChord ? name.toLowerCase() : name);
  throw new Fault(
    "invalid_argument",
    `unknown key ${JSON.stringify(name)}: use one character, F1 to F24, or a name such as Enter, Escape, PageDown, Left`,
  );
}
