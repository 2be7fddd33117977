/** The meaning of a text on the screen. A theme decides about its look. */
export type Role =
  | "user"
  | "dim"
  | "strong"
  | "good"
  | "bad"
  | "hold"
  | "accent"
  | "heading"
  | "code"
  | "link"
  | "quote"
  | "italic"
  | "struck"
  | "keyword"
  | "string"
  | "comment"
  | "number";

export const themeNames = ["dark", "light", "none"] as const;
export type ThemeName = (typeof themeNames)[number];

/** Defines how the parts of the screen look. The painted texts must not contain control characters themselves. */
export interface Theme {
  readonly name: ThemeName;
  readonly paint: (role: Role, text: string) => string;
}

type Styles = Readonly<Record<Role, readonly [on: string, off: string]>>;

const attributes = {
  strong: ["1", "22"],
  dim: ["2", "22"],
  italic: ["3", "23"],
  struck: ["9", "29"],
} as const;

/** A theme that uses the sixteen basic colours, so that the palette of the terminal decides about contrast. */
const dark: Styles = {
  ...attributes,
  user: ["36", "39"],
  good: ["32", "39"],
  bad: ["91", "39"],
  hold: ["33", "39"],
  accent: ["35", "39"],
  heading: ["1;36", "22;39"],
  code: ["33", "39"],
  link: ["4;34", "24;39"],
  quote: ["2;3", "22;23"],
  keyword: ["35", "39"],
  string: ["32", "39"],
  comment: ["2", "22"],
  number: ["36", "39"],
};

const light: Styles = {
  ...dark,
  user: ["34", "39"],
  bad: ["31", "39"],
  hold: ["35", "39"],
  heading: ["1;34", "22;39"],
  code: ["35", "39"],
  number: ["34", "39"],
};

/** A look without colours and without attributes. */
const plain: Theme = { name: "none", paint: (_role, text) => text };

export function themeOf(name: ThemeName): Theme {
  if (name === "none") return plain;
  const styles = name === "dark" ? dark : light;
  return {
    name,
    paint: (role, text) => {
      if (text === "") return "";
      const [on, off] = styles[role];
      return `\u{1b}[${on}m${text}\u{1b}[${off}m`;
    },
  };
}

/**
 * Returns the theme for a terminal. If `NO_COLOR` is set or the terminal has no colours, the theme has none either.
 */
export function themeFor(
  env: Readonly<Record<string, string | undefined>>,
  wanted: string | undefined,
): ThemeName {
  const noColor = env["NO_COLOR"];
  if ((noColor !== undefined && noColor !== "") || env["TERM"] === "dumb") return "none";
  const named = themeNames.find((name) => name === wanted);
  if (named !== undefined) return named;
  // Some terminals say the number of their background colour.
  const background = Number(env["COLORFGBG"]?.split(";").at(-1) ?? Number.NaN);
  return background === 7 || background === 15 ? "light" : "dark";
}
