import {
  StatementSync,
  type DatabaseSync,
  type SQLInputValue,
  type StatementResultingChanges,
} from "node:sqlite";

/** Whether this Node version has `setReturnArrays`, which exists since Node 22.16. */
const hasLists = "setReturnArrays" in StatementSync.prototype;

/**
 * A prepared statement. Its parameters are either all numbered (`?1`, which may occur several times) or all anonymous
 * (`?`). Node before 24.7 cannot bind numbered parameters by position, so they are replaced by anonymous ones.
 */
export class Statement {
  readonly #statement: StatementSync;
  /** For each parameter, the index of its value. `undefined` if the values have the order of the parameters. */
  readonly #order: readonly number[] | undefined;

  constructor(connection: DatabaseSync, sql: string) {
    this.#order = valueOrder(sql);
    this.#statement = connection.prepare(sql.replaceAll(numbered, "?"));
  }

  run(...values: SQLInputValue[]): StatementResultingChanges {
    return this.#statement.run(...this.#inOrder(values));
  }

  get(...values: SQLInputValue[]): object | undefined {
    return this.#statement.get(...this.#inOrder(values));
  }

  all(...values: SQLInputValue[]): object[] {
    return this.#statement.all(...this.#inOrder(values));
  }

  /** Runs the statement like `all`, but returns each row as an array of its columns. */
  lists(...values: SQLInputValue[]): unknown[][] {
    const statement = this.#statement;
    if (!hasLists) return this.all(...values).map((row) => Object.values(row));
    statement.setReturnArrays(true);
    try {
      return statement.all(...this.#inOrder(values)) as unknown as unknown[][];
    } finally {
      statement.setReturnArrays(false);
    }
  }

  #inOrder(values: SQLInputValue[]): SQLInputValue[] {
    return this.#order === undefined ? values : this.#order.map((index) => values[index] ?? null);
  }
}

const numbered = /\?\d+/gu;

function valueOrder(sql: string): readonly number[] | undefined {
  const order = Array.from(sql.matchAll(numbered), ([parameter]) => Number(parameter.slice(1)) - 1);
  return order.every((value, index) => value === index) ? undefined : order;
}
