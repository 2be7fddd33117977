import { Fault } from "../../kernel/index.ts";

/** Values of variables by name. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** Matches `${NAME}` and `${NAME:-default}`. */
const reference = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** Replaces variables in the texts of one server's configuration, and collects all missing variables for one error. */
export class VariableText {
  readonly #server: string;
  readonly #variables: Variables;
  readonly #missing = new Set<string>();

  constructor(server: string, variables: Variables) {
    this.#server = server;
    this.#variables = variables;
  }

  /** Replaces the variables in a text. A variable that is set to an empty text counts as set. */
  expand(text: string): string {
    return text.replaceAll(reference, (_whole, name: string, otherwise: string | undefined) => {
      const value = this.#variables[name] ?? otherwise;
      if (value === undefined) this.#missing.add(name);
      return value ?? "";
    });
  }

  /** Replaces the variables in each text of a list. */
  expandAll(texts: readonly string[]): string[] {
    return texts.map((text) => this.expand(text));
  }

  /** Replaces the variables in each value of a record. */
  expandValues(texts: Readonly<Record<string, string>>): Record<string, string> {
    return Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, this.expand(text)]));
  }

  /** Throws if an expanded text used a variable that is not set. */
  assertComplete(): void {
    const missing = [...this.#missing];
    if (missing.length === 0) return;
    const [one = ""] = missing;
    throw new Fault(
      "invalid_argument",
      `MCP server ${this.#server} needs ${missing.join(", ")}, which the environment does not set: set it, or write \${${one}:-default}`,
      { details: { server: this.#server, missing } },
    );
  }
}
