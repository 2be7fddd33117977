import { createRequire } from "node:module";
import type { RE2JS } from "re2js";

type Engine = typeof RE2JS;

let engine: Engine | undefined;

/** Returns the linear-time engine. Its first use in a process takes tens of milliseconds. */
function loadEngine(): Engine {
  engine ??= (createRequire(import.meta.url)("re2js") as { readonly RE2JS: Engine }).RE2JS;
  return engine;
}

/** The flags of a pattern, named as in `RegExp`. */
export type Re2Flags = Partial<Pick<RegExp, "ignoreCase" | "multiline" | "dotAll">>;

/**
 * Compiles a pattern that is valid with the flag `u`, for a search in linear time. Returns `undefined` if the engine does not support the
 * pattern: lookarounds, backreferences, repetitions above 1,000.
 */
export function re2Pattern(source: string, flags: Re2Flags = {}): RE2JS | undefined {
  const re2 = loadEngine();
  const bits =
    (flags.ignoreCase === true ? re2.CASE_INSENSITIVE : 0) |
    (flags.multiline === true ? re2.MULTILINE : 0) |
    (flags.dotAll === true ? re2.DOTALL : 0);
  try {
    return re2.compile(re2.translateRegExp(withRe2Classes(source, flags.dotAll === true)), bits);
  } catch {
    // The pattern is well-formed, because `RegExp` accepts it: the engine does not support it.
    return undefined;
  }
}

/** Characters that `\s` matches in JavaScript. In RE2 it matches only ASCII white space. */
const whiteSpace = String.raw`\s\v\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`;
/** Characters that `\S` matches in JavaScript, as ranges, because RE2 has no negated class inside a class. */
const nonSpace = String.raw`\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`;
const lineEnds = String.raw`\n\r\x{2028}\x{2029}`;

/**
 * Matches the parts of a pattern whose meaning differs between JavaScript and RE2, and the start and end of a
 * character class.
 */
const differing =
  /\\u(?<high>[dD][89abAB][\da-fA-F]{2})\\u(?<low>[dD][c-fC-F][\da-fA-F]{2})|\\.|\(\?[a-z]*-?[a-z]+:|\[|\]|\./gsu;

/** Escapes that RE2 reads in another way than JavaScript: backreferences by number and name, control characters. */
const otherEscape = /^\\[1-9ck]$/u;

/** Writes a pattern of JavaScript so that white space, `.` and escaped surrogate pairs mean the same in RE2. */
function withRe2Classes(source: string, dotAll: boolean): string {
  let isInClass = false;
  return source.replaceAll(differing, (part, high?: string, low?: string) => {
    if (part === "[") isInClass = true;
    if (part === "]") isInClass = false;
    if (part === "." && !isInClass) return dotAll ? part : `[^${lineEnds}]`;
    if (part === String.raw`\s`) return isInClass ? whiteSpace : `[${whiteSpace}]`;
    if (part === String.raw`\S`) return isInClass ? nonSpace : `[^${whiteSpace}]`;
    if (part === String.raw`\b` && isInClass) return String.raw`\x08`;
    if (otherEscape.test(part)) throw new SyntaxError(`${part} has another meaning in RE2`);
    if (part.startsWith("(?") && !isInClass)
      throw new SyntaxError("the rewriting does not follow flags of groups");
    if (high === undefined || low === undefined) return part;
    const pair = String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16));
    return String.raw`\u{${pair.codePointAt(0)?.toString(16)}}`;
  });
}
