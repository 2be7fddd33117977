import { describe, expect, test } from "vitest";
import { textPattern } from "../../../src/capabilities/tools/text-pattern.ts";

const use = { owner: "regex()" };

/** The matches of a pattern as JavaScript finds them, without empty ones. */
function native(pattern: RegExp, text: string): readonly (readonly [number, number])[] {
  const every = new RegExp(pattern.source, `${pattern.flags.replaceAll(/[gy]/gu, "")}g`);
  return [...text.matchAll(every)]
    .map(({ index, 0: found }) => [index, index + found.length] as const)
    .filter(([from, to]) => to > from);
}

const texts = [
  "",
  "order TCK-12 and tck-7, TCK-",
  "a\u00A0b\u3000c d\te",
  "one\ntwo\r\nthree\u2028four",
  "naïve Straße ÉCOLE école",
  "x😀y😀😀z",
  "foo-bar_baz a.b {1,2} [x] $9",
  "aaaaaaaaaaaaaaaaaaaaaaaa!",
];

describe("textPattern()", () => {
  test.for([
    /TCK-\d+/u,
    /tck-\d+/iu,
    /TCK-\d+/gy,
    /\bTCK\b/u,
    /\s+/u,
    /\S+/u,
    /[\s\S]+/u,
    /[^\S\n]+/u,
    /[\S\n]+/u,
    /./u,
    /.+/su,
    /t.*e/u,
    /^\w+$/mu,
    /^two$/mu,
    /^three$/mu,
    /école/iu,
    /\p{Lu}\p{L}+/u,
    /[^\p{L}\s]+/u,
    /😀+/u,
    /\u{1F600}/u,
    /\ud83d\ude00/u,
    /[😀]/u,
    /(?<number>\d+)|(?:foo|bar)/u,
    new RegExp(String.raw`foo\-bar\_baz`),
    /[a-z]\.[a-z]/,
    /\{\d,\d\}/,
    /\$\d/,
    /(a+)+$/u,
    /(a+)+!/u,
    /a{2,5}?/u,
    /x*/u,
    /[\b]/u,
    /\Bb/u,
    /^$/u,
  ])("textPattern() finds the matches that RegExp finds: %s", (pattern) => {
    const compiled = textPattern(pattern, use);
    for (const text of texts) {
      const single = new RegExp(pattern.source, pattern.flags.replaceAll(/[gy]/gu, ""));
      expect([text, compiled.test(text)]).toEqual([text, single.test(text)]);
      expect([text, compiled.finds(text)]).toEqual([text, native(pattern, text)]);
    }
  });

  const unsupported = [
    /(?<=a)b/u,
    /a(?!b)/u,
    /(a)\1/u,
    /(?<x>a)\k<x>/u,
    /a{1001}/u,
    new RegExp(String.raw`[\w--\d]`, "v"),
    /\cJ/u,
    new RegExp(String.raw`\z`),
    /a{/,
    /(?i:a)b/u,
  ];

  test.for(unsupported)(
    "textPattern() refuses a pattern that needs backtracking or has another meaning in RegExp: %s",
    (pattern) => {
      expect(() => textPattern(pattern, use)).toThrow(
        expect.objectContaining({
          code: "invalid_argument",
          message: expect.stringMatching(
            /^invalid pattern .+ of regex\(\): it needs backtracking.+allowBacktracking: true$/u,
          ),
        }),
      );
    },
  );

  test.for(unsupported)(
    "textPattern() runs the pattern with RegExp if allowBacktracking is set: %s",
    (pattern) => {
      const compiled = textPattern(pattern, { ...use, allowBacktracking: true });
      for (const text of texts) expect(compiled.finds(text)).toEqual(native(pattern, text));
    },
  );

  test("textPattern() refuses a text in place of a pattern", () => {
    expect(() => textPattern("TCK" as never, use)).toThrow("invalid pattern of regex(): expected a RegExp");
  });

  test("textPattern() takes linear time for patterns on which RegExp takes exponential time", () => {
    const text = `${"a".repeat(20_000)}!`;
    for (const pattern of [/^(a+)+$/u, /^(a|a)*$/u, /^(a|aa)+$/u, /(\w+\s?)+\?$/u]) {
      const compiled = textPattern(pattern, use);
      expect(compiled.test(text)).toBe(false);
      expect(compiled.finds(text)).toEqual([]);
    }
  });
});
