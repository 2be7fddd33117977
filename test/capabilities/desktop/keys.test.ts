import { expect, test } from "vitest";
import { parseChord, symbolOf } from "../../../src/capabilities/desktop/x11/keys.ts";

const [shift, control] = [0xffe1, 0xffe3];

test.each([
  ["Enter", [0xff0d]],
  ["a", [0x61]],
  ["A", [0x41]],
  ["Control+A", [control, 0x61]],
  ["ctrl+shift+Page_Down", [control, shift, 0xff56]],
  ["F12", [0xffc9]],
  ["Control++", [control, 0x2b]],
  ["+", [0x2b]],
  ["é", [0xe9]],
  ["☃", [0x0100_2603]],
])("parseChord() converts the keys %s to keysyms", (chord, keys) => {
  expect(parseChord(chord)).toEqual(keys);
});

test.each(["", "Hyper", "a+b", "F25", "Control+"])(
  "parseChord() refuses %j and says what is wrong",
  (chord) => {
    expect(() => parseChord(chord)).toThrow(/key|hold/u);
  },
);

test("symbolOf() refuses control characters except line breaks and tabs", () => {
  expect([symbolOf("\n"), symbolOf("\t")]).toEqual([0xff0d, 0xff09]);
  expect(() => symbolOf("\u0007")).toThrow("the character with code 7 cannot be typed");
});
