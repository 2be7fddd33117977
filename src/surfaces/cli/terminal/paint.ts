/** Adds colours to terminal output. */
export interface Paint {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly green: (text: string) => string;
  readonly yellow: (text: string) => string;
  readonly red: (text: string) => string;
  readonly magenta: (text: string) => string;
}

/**
 * Returns colour functions for a terminal that a person reads, and otherwise functions that return plain text.
 * `NO_COLOR` is respected.
 */
export function paintFor(isWatched: boolean, env: Readonly<Record<string, string | undefined>>): Paint {
  const noColor = env["NO_COLOR"];
  const colours = isWatched && (noColor === undefined || noColor === "") && env["TERM"] !== "dumb";
  const style =
    (on: number, off: number) =>
    (text: string): string =>
      colours ? `\u{1b}[${on}m${text}\u{1b}[${off}m` : text;
  return {
    bold: style(1, 22),
    dim: style(2, 22),
    green: style(32, 39),
    yellow: style(33, 39),
    red: style(31, 39),
    magenta: style(35, 39),
  };
}
