import {
  StatementSync,
  type DatabaseSync,
  type SQLInputValue,
  type StatementResultingChanges,
} from "node:sqlite";

/** `setReturnArrays` exists since Node 22.16. */
const hasLists = "setReturnArrays" in StatementSync.prototype;

/**
 * A prepared statement. Its parameters are either all numbered (`?1`, which may occur several times) or all anonymous
 * (`?`). Node before 24.7 cannot bind numbered parameters by position, so they are replaced by anonymous ones.
 */
export class Statement {
  readonly #statement: StatementSync;
  /** The index of the value for each parameter. `undefined` if the values are in the order of the parameters. */
  readonly #order: readonly number[] | undefined;

  constructor(connection: DatabaseSync, sql: string) {
    const text = sqliteText(sql);
    this.#order = valueOrder(text);
    this.#statement = connection.prepare(text.replaceAll(numbered, "?"));
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

  /** Like `all`, with each row as an array of its columns. */
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

/**
 * Returns the text of a statement that both SQL stores share (`Work`) as SQLite reads it: the tables have no schema, lists are
 * JSON, and types of parameters and locks of rows do not exist.
 */
function sqliteText(sql: string): string {
  return sql
    .replaceAll(/\{([a-z_]+)\}/gu, "$1")
    .replaceAll(/= ANY\((\$\d+)::[a-z]+\[\]\)/gu, "IN (SELECT value FROM json_each($1))")
    .replaceAll(/<> ALL\((\$\d+)::[a-z]+\[\]\)/gu, "NOT IN (SELECT value FROM json_each($1))")
    .replaceAll(/SELECT unnest\((\$\d+)::[a-z]+\[\]\) AS ([a-z]+)/gu, "SELECT value AS $2 FROM json_each($1)")
    .replaceAll(/::[a-z0-9]+| COLLATE "C"/gu, "")
    .replaceAll("strpos(", "instr(")
    .replaceAll(/ FOR (?:SHARE|UPDATE|NO KEY UPDATE)/gu, "")
    .replaceAll(/\$(\d+)/gu, "?$1");
}

const numbered = /\?\d+/gu;

function valueOrder(sql: string): readonly number[] | undefined {
  const order = Array.from(sql.matchAll(numbered), ([parameter]) => Number(parameter.slice(1)) - 1);
  return order.every((value, index) => value === index) ? undefined : order;
}
