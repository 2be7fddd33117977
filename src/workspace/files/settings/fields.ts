/** One key of `settings.json` or of the front matter of an agent: its type, its meaning, and whether it needs trust. */
export type Field =
  | (AnyField & { readonly type: "text" | "boolean" | "texts" })
  | (AnyField & { readonly type: "integer" | "number" })
  | (AnyField & { readonly type: "choice"; readonly choices: readonly string[] })
  | GroupField
  /** Groups with the same fields, each under a name that the user chooses. */
  | (AnyField & { readonly type: "map"; readonly fields: Fields });

type GroupField = AnyField & {
  readonly type: "group";
  readonly fields: Fields;
  /** Whether `false` switches the whole group off. Default: `false`. */
  readonly canBeOff?: boolean;
};

interface AnyField {
  readonly description: string;
  /**
   * When a project needs trust to set the key: `always`, or only if its value is `wider` than that of the user,
   * which means that it allows more. Absent if it never needs trust.
   */
  readonly trust?: "always" | "wider";
  /** For `trust: "wider"`, the value that applies if the user sets none. Absent if there is no limit then. */
  readonly usual?: number | string;
  /** Whether the key limits agents. If so, a misspelt key throws instead of giving a warning. Default: `false`. */
  readonly isPolicy?: boolean;
}

/** A table of keys. */
export type Fields = Readonly<Record<string, Field>>;

/** The value of a field in TypeScript. */
type ValueOf<Each extends Field> = Each extends { readonly type: "text" }
  ? string
  : Each extends { readonly type: "boolean" }
    ? boolean
    : Each extends { readonly type: "texts" }
      ? readonly string[]
      : Each extends { readonly type: "integer" | "number" }
        ? number
        : Each extends { readonly type: "choice"; readonly choices: readonly (infer Choice)[] }
          ? Choice
          : Each extends { readonly type: "group"; readonly fields: infer Inner extends Fields }
            ? ValuesOf<Inner> | (Each extends { readonly canBeOff: true } ? false : never)
            : Each extends { readonly type: "map"; readonly fields: infer Inner extends Fields }
              ? Readonly<Record<string, ValuesOf<Inner>>>
              : never;

/** The values of a table. Every key is optional. */
export type ValuesOf<All extends Fields> = { readonly [Name in keyof All]?: ValueOf<All[Name]> };
