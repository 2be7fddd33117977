import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { Statement } from "../../../../../src/runtime/stores/sqlite/db/statement.ts";

const connection = new DatabaseSync(":memory:");
connection.exec("CREATE TABLE pairs (one, two)");

test.each([
  { sql: "SELECT ? AS a, ? AS b", values: [1, 2], expected: [1, 2] },
  { sql: "SELECT ?1 AS a, ?2 AS b", values: [1, 2], expected: [1, 2] },
  { sql: "SELECT ?2 AS a, ?1 AS b", values: [1, 2], expected: [2, 1] },
  { sql: "SELECT ?1 AS a, ?1 AS b, ?2 AS c", values: [1, 2], expected: [1, 1, 2] },
  { sql: "SELECT ?1 AS a, ?12 AS b", values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], expected: [1, 12] },
  { sql: "SELECT ?1 AS a, ?2 AS b", values: [1], expected: [1, null] },
])("the class Statement binds values to the parameters of $sql by number", ({ sql, values, expected }) => {
  const statement = new Statement(connection, sql);
  expect(statement.lists(...values)).toEqual([expected]);
  expect(Object.values(statement.get(...values) ?? {})).toEqual(expected);
  expect(statement.all(...values).map((row) => Object.values(row))).toEqual([expected]);
});

test("Statement.run() reports the number of changed rows", () => {
  const insert = new Statement(connection, "INSERT INTO pairs SELECT ?1, ?2 WHERE ?1 IS NOT NULL");
  expect(insert.run("a", "b").changes).toBe(1);
  expect(insert.run(null, "b").changes).toBe(0);
});
