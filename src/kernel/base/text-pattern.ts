/** A pattern that is searched in texts. */
export interface TextPattern {
  /** Whether the text contains a match. */
  test(text: string): boolean;
  /** Returns the matches that are not empty, in the order of the text. `to` is exclusive. */
  finds(text: string): readonly TextSpan[];
}

/** A part of a text, in UTF-16 units. */
export type TextSpan = readonly [from: number, to: number];

/** How a pattern is compiled. */
export interface PatternUse {
  /** The function or option that takes the pattern, for errors. */
  readonly owner: string;
  /**
   * Whether a pattern that needs backtracking is accepted. Some texts then take exponential time and stop the process.
   * Default: `false`.
   */
  readonly allowBacktracking?: boolean;
}

/**
 * Compiles a pattern so that a search takes time linear in the length of the text. Throws `invalid_argument` for a
 * pattern that needs backtracking, unless `allowBacktracking` is set.
 */
export type CompilePattern = (pattern: RegExp, use: PatternUse) => TextPattern;
