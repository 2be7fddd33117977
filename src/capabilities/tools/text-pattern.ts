import type { RE2JS } from "re2js";
import { Fault, type PatternUse, type TextPattern, type TextSpan } from "../../kernel/index.ts";
import { re2Pattern } from "./re2-pattern.ts";

/**
 * Compiles a pattern of a developer so that a search takes time linear in the length of the text. It has the meaning of
 * the flag `u`. Where a line ends (flag `m`), it may find more than `RegExp`, never less.
 */
export function textPattern(pattern: RegExp, { owner, allowBacktracking = false }: PatternUse): TextPattern {
  if (!(pattern instanceof RegExp))
    throw new Fault("invalid_argument", `invalid pattern of ${owner}: expected a RegExp such as /TCK-\\d+/u`);
  const expression = linearOf(pattern);
  if (expression !== undefined) return new LinearPattern(expression, pattern.multiline);
  if (allowBacktracking) return backtracking(pattern);
  throw new Fault(
    "invalid_argument",
    `invalid pattern ${String(pattern)} of ${owner}: it needs backtracking, so that some texts would stop the process; write it without lookarounds, backreferences, repetitions above 1,000 and the flag v, or set allowBacktracking: true`,
  );
}

function linearOf(pattern: RegExp): RE2JS | undefined {
  if (pattern.unicodeSets) return undefined;
  const source = pattern.unicode ? pattern.source : withoutIdleEscapes(pattern.source);
  return isUnicode(source) ? re2Pattern(source, pattern) : undefined;
}

/** Whether a pattern is valid with the flag `u`. Others contain escapes that mean something else in RE2, such as `\z`. */
function isUnicode(source: string): boolean {
  try {
    return new RegExp(source, "u") instanceof RegExp;
  } catch {
    return false;
  }
}

/** Removes escapes that have no effect, such as `\-` outside a class, because the flag `u` does not allow them. */
function withoutIdleEscapes(source: string): string {
  return source.replaceAll(/\\(.)/gsu, (escape, sign: string) =>
    /[!"#%&',:;<=>@_`~ -]/u.test(sign) ? `\\x${sign.charCodeAt(0).toString(16).padStart(2, "0")}` : escape,
  );
}

/** Matches the ends of lines that RE2 does not recognise. */
const otherLineEnds = /[\r\u2028\u2029]/gu;

class LinearPattern implements TextPattern {
  readonly #expression: RE2JS;
  readonly #isMultiline: boolean;

  constructor(expression: RE2JS, isMultiline: boolean) {
    this.#expression = expression;
    this.#isMultiline = isMultiline;
  }

  test(text: string): boolean {
    return this.#readings(text).some((each) => this.#expression.test(each));
  }

  /**
   * Returns the matches. It first only tests for a match, which is several times faster than a search for
   * positions.
   */
  finds(text: string): readonly TextSpan[] {
    const found = this.#readings(text).flatMap((each) =>
      this.#expression.test(each) ? [...this.#spans(each)] : [],
    );
    return merged(found);
  }

  /**
   * Returns the text. If lines may end in another way than with `\n`, also returns the text with every line ended
   * by `\n`.
   */
  #readings(text: string): readonly string[] {
    const other = this.#isMultiline ? text.replaceAll(otherLineEnds, "\n") : text;
    return other === text ? [text] : [text, other];
  }

  *#spans(text: string): Iterable<TextSpan> {
    const matcher = this.#expression.matcher(text);
    while (matcher.find()) if (matcher.end() > matcher.start()) yield [matcher.start(), matcher.end()];
  }
}

/** Merges spans that overlap, so that each part of the text is in one span. */
function merged(spans: readonly TextSpan[]): readonly TextSpan[] {
  const all: TextSpan[] = [];
  for (const [from, to] of spans.toSorted((one, other) => one[0] - other[0])) {
    const last = all.at(-1);
    if (last === undefined || from >= last[1]) all.push([from, to]);
    else if (to > last[1]) all[all.length - 1] = [last[0], to];
  }
  return all;
}

function backtracking({ source, flags }: RegExp): TextPattern {
  // The flags g and y keep a position between calls of `test`, which would then miss every other match.
  const single = new RegExp(source, flags.replaceAll(/[gy]/gu, ""));
  const every = new RegExp(source, `${single.flags}g`);
  return {
    test: (text) => single.test(text),
    finds: (text) =>
      [...text.matchAll(every)]
        .map(({ index, 0: found }): TextSpan => [index, index + found.length])
        .filter(([from, to]) => to > from),
  };
}
