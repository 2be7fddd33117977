import { Fault } from "../../kernel/index.ts";

/** Where variables are looked up. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** `${NAME}`, or `${NAME:-what to take when it is not set}`. */
const reference = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** Puts variables into the texts of one server's configuration. All that are missing are named at once. */
export class VariableText {
  readonly #server: string;
  readonly #variables: Variables;
  readonly #missing = new Set<string>();

  constructor(server: string, variables: Variables) {
    this.#server = server;
    this.#variables = variables;
  }

  /** A variable that is set to nothing is set: it is put in as nothing. */
  expand(text: string): string {
    return text.replaceAll(reference, (_whole, name: string, otherwise: string | undefined) => {
      const value = this.#variables[name] ?? otherwise;
      if (value === undefined) this.#missing.add(name);
      return value ?? "";
    });
  }

  expandAll(texts: readonly string[]): string[] {
    return texts.map((text) => this.expand(text));
  }

  expandValues(texts: Readonly<Record<string, string>>): Record<string, string> {
    return Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, this.expand(text)]));
  }

  /** Throws when anything that was expanded named a variable that is not set. */
  assertComplete(): void {
    const missing = [...this.#missing];
    if (missing.length === 0) return;
    const [one = ""] = missing;
    throw new Fault(
      "invalid_argument",
      `MCP server ${this.#server} needs ${missing.join(", ")}, which the environment does not set: set it, or write \${${one}:-a default}`,
      { details: { server: this.#server, missing } },
    );
  }
}
