import type { MaybePromise } from "../../kernel/index.ts";

/** SQLite file of a memory. All methods except `patiently` are synchronous. */
export interface MemoryFile {
  /** Executes a statement and returns the number of changed rows. */
  run(sql: string, ...values: SqlValue[]): number;
  /** Executes an INSERT and returns the id of the new row. */
  insert(sql: string, ...values: SqlValue[]): number;
  /** Returns the first row of a query, or `undefined` if there is none. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- only the caller knows what a query returns
  get<Row extends object>(sql: string, ...values: SqlValue[]): Row | undefined;
  /** Returns all rows of a query. */
  all<Row extends object>(sql: string, ...values: SqlValue[]): Row[];
  /** Runs `work` in one transaction, which is rolled back if `work` throws. */
  transaction<Result>(kind: "IMMEDIATE" | "DEFERRED", work: () => Result): Result;
  /** Runs `work`, and again while another process holds the lock of the file. */
  patiently<Result>(work: () => Result): MaybePromise<Result>;
  /** Closes the file. */
  close(): void;
}

type SqlValue = string | number | null;
