import type { Value } from "./work.ts";

/** The conditions of a query, according to its filters. A `?` in a condition is replaced by its next value. */
export class Conditions {
  readonly values: Value[] = [];
  readonly #terms: string[] = [];

  /** All conditions, with numbered parameters. */
  get sql(): string {
    return this.#terms.length === 0 ? "true" : this.#terms.join(" AND ");
  }

  /** Adds a value that is not part of a condition, such as a limit, and returns its parameter. */
  value(value: Value): string {
    return `$${this.values.push(value)}`;
  }

  add(term: string, ...values: readonly Value[]): this {
    let next = this.values.length;
    this.#terms.push(term.replaceAll("?", () => `$${++next}`));
    this.values.push(...values);
    return this;
  }
}
