import { describe, expect, test } from "vitest";
import { visibleLine, visibleText } from "../../../src/kernel/index.ts";

/** Characters that a person cannot see, or that change how the text around them looks, with the expected escape. */
const hidden: readonly (readonly [string, string])[] = [
  ["\0", "\\u0000"],
  ["\b", "\\u0008"],
  ["\r", "\\r"],
  ["\u001b", "\\u001b"],
  ["\u007f", "\\u007f"],
  ["\u009b", "\\u009b"],
  ["\u00ad", "\\u00ad"],
  ["\u034f", "\\u034f"],
  ["\u061c", "\\u061c"],
  ["\u115f", "\\u115f"],
  ["\u1680", "\\u1680"],
  ["\u17b4", "\\u17b4"],
  ["\u180e", "\\u180e"],
  ["\u200a", "\\u200a"],
  ["\u200b", "\\u200b"],
  ["\u200d", "\\u200d"],
  ["\u200f", "\\u200f"],
  ["\u2028", "\\u2028"],
  ["\u202a", "\\u202a"],
  ["\u202e", "\\u202e"],
  ["\u2060", "\\u2060"],
  ["\u2069", "\\u2069"],
  ["\u2800", "\\u2800"],
  ["\u3164", "\\u3164"],
  ["\ufe0f", "\\ufe0f"],
  ["\ufeff", "\\ufeff"],
  ["\uffa0", "\\uffa0"],
  ["\ufff9", "\\ufff9"],
  ["\ud800", "\\ud800"],
  ["\udc00", "\\udc00"],
  ["\u{e0041}", "\\udb40\\udc41"],
  ["\u{e0100}", "\\udb40\\udd00"],
];

describe("the visible form of a text", () => {
  test.each(hidden)("the visible form of a text shows %j as its escape", (character, escape) => {
    expect(visibleText(`a${character}b`)).toBe(`a${escape}b`);
    expect(visibleLine(`a${character}b`)).toBe(`a${escape}b`);
  });

  test("the visible form of a text shows every character of the ranges that hide or reorder text", () => {
    const ranges = [
      [0x7f, 0x9f],
      [0x200b, 0x200f],
      [0x202a, 0x202e],
      [0x2060, 0x206f],
      [0xfe00, 0xfe0f],
      [0xe0000, 0xe007f],
      [0xe0100, 0xe01ef],
    ] as const;
    for (const [from, to] of ranges)
      for (let code = from; code <= to; code++)
        expect(visibleText(`a${String.fromCodePoint(code)}`)).toMatch(/^a(?:\\u[0-9a-f]{4}){1,2}$/u);
  });

  test("the visible form of a text keeps line breaks and tabs, and escapes them if it must be one line", () => {
    expect(visibleText("a\n\tb\r\nc")).toBe("a\n\tb\r\nc");
    expect(visibleLine("a\n\tb\r\nc")).toBe(String.raw`a\n\tb\r\nc`);
  });

  test("the visible form of a text keeps ordinary text of all scripts, and emoji with their joiners", () => {
    const text = "Größe 你好 שלום héllo 1 000 ⚠️ 👩‍💻 👍🏽 ❤️‍🔥 1️⃣ 🏳️‍🌈";
    expect(visibleText(text)).toBe(text);
  });

  test("the visible form of a text keeps an emoji's joiners, but no hidden characters that are not part of the emoji", () => {
    expect(visibleText("👩‍")).toBe("👩\\u200d");
    expect(visibleText("⚠️️")).toBe("⚠️\\ufe0f");
    expect(visibleText("1️")).toBe("1\\ufe0f");
    expect(visibleText("🏴\u{e0072}\u{e006d}\u{e007f}")).not.toMatch(/[\u{e0000}-\u{e007f}]/u);
  });

  test("the visible form of a JSON text has the same value", () => {
    const value = Object.fromEntries(
      hidden.map(([character]) => [`name${character}`, ["\\u202e", `x${character}y\n`]]),
    );
    for (const indent of [0, 2])
      expect(JSON.parse(visibleText(JSON.stringify(value, null, indent)))).toEqual(value);
  });
});
